//! A request body whose incomplete messages count in the buffer budget and have deadlines.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;
use weir_grpc::{ConnectionEvent, HeldBytes, MESSAGE_TIMEOUT, MessageFraming};

use super::open_calls::CallBounds;
use crate::server::body_layer::{BodyLayer, PolledFrame};

/// Counts the messages of a request. An incomplete one reserves its length in the buffer budget.
pub(super) struct CountedMessages {
    framing: MessageFraming,
    largest_message: usize,
    bounds: CallBounds,
    reserved: Option<HeldBytes>,
    timer: Option<(AwaitedPart, Pin<Box<Sleep>>)>,
}

/// The part of a body that has a deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AwaitedPart {
    FirstMessage,
    /// The rest of the message that begins at this offset.
    Rest(u64),
}

impl CountedMessages {
    /// Creates the layer of a call whose messages have at most `largest_message` bytes each, and may be compressed.
    pub(super) fn new(largest_message: usize, compressed: bool, bounds: &CallBounds) -> Self {
        let (framing, bounds) = (MessageFraming::new(compressed), bounds.clone());
        Self { framing, largest_message, bounds, reserved: None, timer: None }
    }

    fn count(&mut self, piece: &[u8]) -> Result<(), Status> {
        let before = self.framing.complete();
        self.framing.push(piece, self.largest_message);
        if self.framing.complete() != before {
            self.reserved = None;
        }
        if let (None, Some(length)) = (&self.reserved, self.framing.announced()) {
            let full = "the buffer budget is full: an incomplete message";
            self.reserved = Some(self.bounds.hold(length, full)?);
        }
        Ok(())
    }

    /// Returns the awaited part, and the time in which it must arrive.
    fn awaited(&self) -> Option<(AwaitedPart, Duration)> {
        if self.framing.is_partial() {
            Some((AwaitedPart::Rest(self.framing.complete()), MESSAGE_TIMEOUT))
        } else if self.framing.received() == 0 {
            Some((AwaitedPart::FirstMessage, self.bounds.first_message_timeout))
        } else {
            None
        }
    }

    /// Ready if the awaited part is late, or if there is no space for a call without a message.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        let Some((part, timeout)) = self.awaited() else {
            self.timer = None;
            return Poll::Pending;
        };
        if self.timer.as_ref().is_none_or(|(awaited, _)| *awaited != part) {
            let is_overdrawn = || self.bounds.budget.is_overdrawn() && self.bounds.has_many_calls();
            if self.framing.complete() == 0 && is_overdrawn() {
                return Poll::Ready(
                    self.bounds.no_space("the buffer budget is full: a call without a message"),
                );
            }
            self.timer = Some((part, Box::pin(tokio::time::sleep(timeout))));
        }
        let Some((_, timer)) = &mut self.timer else { return Poll::Pending };
        ready!(timer.as_mut().poll(context));
        let observer = &self.bounds.observer;
        observer.observe(ConnectionEvent::MessageTimeout, "a message did not arrive in time");
        Poll::Ready(Status::deadline_exceeded(match part {
            AwaitedPart::FirstMessage => {
                format!("first_message_timeout: the first message did not arrive within {timeout:?}")
            }
            AwaitedPart::Rest(_) => format!("the message did not arrive within {timeout:?}"),
        }))
    }
}

impl BodyLayer for CountedMessages {
    fn poll_frame(&mut self, body: Pin<&mut Body>, context: &mut Context<'_>) -> PolledFrame {
        let Poll::Ready(polled) = http_body::Body::poll_frame(body, context) else {
            let late = ready!(self.poll_late(context));
            return Poll::Ready(Some(Err(late)));
        };
        if let Some(Ok(frame)) = &polled
            && let Some(piece) = frame.data_ref()
            && let Err(full) = self.count(piece)
        {
            return Poll::Ready(Some(Err(full)));
        }
        Poll::Ready(polled)
    }
}
