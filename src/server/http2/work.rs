//! What goes on for a connection's streams besides its frames: calls that wait for their end, and answers
//! that come in pieces. All of it is part of the connection's task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http_body::Frame;
use tonic::Status;

use crate::service::{Call, Poured, Reply};

/// All that goes on.
#[derive(Default)]
pub(super) struct Works(FuturesUnordered<Work>);

/// An answer that is asked for its next piece.
pub(super) struct Pouring {
    pub(super) stream: u32,
    pub(super) body: Poured,
}

/// What has happened.
pub(super) enum Event {
    /// A call has ended.
    Answered(u32, Result<Reply, Status>),
    /// An answer goes on, or is at its end.
    Poured(Pouring, Option<Frame<Bytes>>),
    /// Whatever it was has failed.
    Failed(u32),
    /// It was given up.
    Dropped,
}

/// One of them; with who waits for it, to be told when it is given up.
struct Work(Option<Kind>, Option<Waker>);

enum Kind {
    Call(u32, Call),
    Pouring(Pouring),
}

impl Works {
    pub(super) fn call(&self, stream: u32, call: Call) {
        self.0.push(Work(Some(Kind::Call(stream, call)), None));
    }

    pub(super) fn pour(&self, pouring: Pouring) {
        self.0.push(Work(Some(Kind::Pouring(pouring)), None));
    }

    /// Gives up what goes on for these streams: one look at all that goes on, however many they are.
    pub(super) fn drop_all_of(&mut self, mut streams: Vec<u32>) {
        if streams.is_empty() {
            return;
        }
        streams.sort_unstable();
        for mut work in Pin::new(&mut self.0).iter_pin_mut() {
            let is_dropped = |kind: &Kind| streams.binary_search(&kind.stream()).is_ok();
            if work.0.take_if(|kind| is_dropped(kind)).is_some()
                && let Some(waker) = work.1.take()
            {
                waker.wake();
            }
        }
    }

    /// The next event that is there.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        self.0.poll_next_unpin(context)
    }
}

impl Kind {
    const fn stream(&self) -> u32 {
        match self {
            Self::Call(stream, _) | Self::Pouring(Pouring { stream, .. }) => *stream,
        }
    }
}

impl Future for Work {
    type Output = Event;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Event> {
        let Some(mut kind) = self.0.take() else { return Poll::Ready(Event::Dropped) };
        let stream = kind.stream();
        // As in a task, a panic is the end of one call, and a log line that the hook has written.
        match catch_unwind(AssertUnwindSafe(|| kind.poll(context))) {
            Ok(Poll::Ready(event)) => Poll::Ready(event.with(kind)),
            Ok(Poll::Pending) => {
                self.0 = Some(kind);
                match &mut self.1 {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            Err(_) => Poll::Ready(Event::Failed(stream)),
        }
    }
}

/// What a poll has brought, without whom it was asked of.
enum Brought {
    Answer(Result<Reply, Status>),
    Piece(Option<Frame<Bytes>>),
    Failed,
}

impl Kind {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Brought> {
        Poll::Ready(match self {
            Self::Call(_, call) => Brought::Answer(ready!(Pin::new(call).poll(context))),
            Self::Pouring(Pouring { body, .. }) => match ready!(body.as_mut().poll_frame(context)) {
                Some(Ok(frame)) => Brought::Piece(Some(frame)),
                Some(Err(_)) => Brought::Failed,
                None => Brought::Piece(None),
            },
        })
    }
}

impl Brought {
    fn with(self, kind: Kind) -> Event {
        match (self, kind) {
            (Self::Answer(answer), kind) => Event::Answered(kind.stream(), answer),
            (Self::Piece(piece), Kind::Pouring(pouring)) => Event::Poured(pouring, piece),
            (Self::Piece(_) | Self::Failed, kind) => Event::Failed(kind.stream()),
        }
    }
}
