//! `ShouldAllowStream`: answers questions in order while the stream is open.
//!
//! The body decides when it is polled: HTTP/2 polls when the caller's send window has room. If the caller stops
//! reading answers, its questions are no longer read, so buffers stay bounded.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::stream::{FuturesOrdered, Stream as _};
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::sync::watch;
use tokio::time::Sleep;
use tonic::Status;
use weir_grpc::{Call, CallContext, IncomingCall, Messages, Reply, deadline_exceeded, reply, turn};
use weir_store::{Store, TOGETHER};

use super::judge::Judge;
use super::several::LaterResult;
use super::wire::{FieldValue, Malformed, MessageFields};
use super::{DecisionService, Decisions, status};
use crate::current_method;

/// A message of answers is sent at this size, or when no further answer is ready.
const ENOUGH_BYTES: usize = 16 << 10;

/// Pending questions per stream.
const MAX_IN_FLIGHT: usize = 1000;

/// Field number of the response in a result; the error's is the next one.
const RESPONSE_FIELD: u32 = 2;

/// Encoded results of pending questions.
type InFlight = FuturesOrdered<Pin<Box<dyn Future<Output = Vec<u8>> + Send>>>;

struct DecisionStream<S> {
    service: Arc<DecisionService<S>>,
    messages: Messages,
    /// Unread rest of the current message.
    rest: Bytes,
    /// Messages after it that had arrived when the connection began to end.
    last: VecDeque<Bytes>,
    in_flight: InFlight,
    context: CallContext,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Judges the credential again, where there is one that can end.
    judge: Option<Judge>,
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Set when no more is read: the status to send after the last answer.
    end: Option<Result<(), Status>>,
    /// Size of the last message of answers.
    usual: usize,
    over: bool,
}

impl<S: Store> DecisionService<S> {
    /// Answers questions until the caller closes its side, or `closing`'s sender is dropped.
    pub fn should_allow_stream(
        self: &Arc<Self>,
        call: IncomingCall,
        mut closing: watch::Receiver<()>,
    ) -> Call {
        let IncomingCall { context, mut messages } = call;
        if !S::AT_ONCE {
            // Pending questions borrow from their messages.
            messages.hold();
        }
        let timer = |deadline: Instant| Box::pin(tokio::time::sleep_until(deadline.into()));
        Call::done(Ok(Reply::Messages(Box::pin(DecisionStream {
            service: Arc::clone(self),
            messages,
            rest: Bytes::new(),
            last: VecDeque::new(),
            in_flight: InFlight::new(),
            deadline: context.deadline.map(timer),
            judge: Judge::from_context(&context),
            context,
            closing: Box::pin(async move { while closing.changed().await.is_ok() {} }),
            end: None,
            usual: 0,
            over: false,
        }))))
    }
}

impl<S: Store> Body for DecisionStream<S> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.over {
            return Poll::Ready(None);
        }
        if turn::remaining() == 0 {
            turn::yield_to_others(context);
            return Poll::Pending;
        }
        self.look_for_the_end(context);
        if let Some(message) = reply::framed_if_any(self.usual, |out| self.answer_more(out, context)) {
            self.usual = message.len();
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        let idle = self.rest.is_empty() && self.last.is_empty() && self.in_flight.is_empty();
        match self.end.take_if(|_| idle) {
            Some(end) => {
                self.over = true;
                Poll::Ready(Some(Ok(Frame::trailers(trailers(end)))))
            }
            None => {
                // Questions may be left that no answer in flight would bring back here.
                if turn::is_over() {
                    turn::yield_to_others(context);
                }
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.over
    }
}

impl<S: Store> DecisionStream<S> {
    /// Checks if the deadline has passed or the connection is to end.
    fn look_for_the_end(&mut self, context: &mut Context<'_>) {
        if let Some(timer) = &mut self.deadline
            && timer.as_mut().poll(context).is_ready()
        {
            // The caller has given up, or is about to.
            self.deadline = None;
            self.rest.clear();
            self.last.clear();
            self.in_flight.clear();
            self.end = Some(Err(deadline_exceeded()));
        } else if let Some(status) = self.judge.as_mut().and_then(|judge| judge.ended(context)) {
            // What has been decided is answered; nothing more is read.
            self.judge = None;
            self.rest.clear();
            self.last.clear();
            self.end = Some(Err(status));
        } else if self.end.is_none() && self.closing.as_mut().poll(context).is_ready() {
            self.take_what_has_arrived(context);
            let going = "this connection is about to end: open a stream on another one, and ask again what \
                         has no answer";
            self.end.get_or_insert_with(|| Err(Status::unavailable(going)));
        }
    }

    /// Reads the messages that have arrived, at one moment, so that the caller cannot keep the stream open by sending
    /// more. The stream's flow-control window bounds them.
    fn take_what_has_arrived(&mut self, context: &mut Context<'_>) {
        while self.end.is_none()
            && let Poll::Ready(next) = self.messages.poll_next(context)
        {
            match next {
                Some(Ok(message)) => self.last.push_back(message),
                Some(Err(status)) => self.end = Some(Err(status)),
                None => self.end = Some(Ok(())),
            }
        }
    }

    /// Appends answers that are ready or can be decided at once.
    fn answer_more(&mut self, out: &mut Vec<u8>, context: &mut Context<'_>) {
        loop {
            self.decide_next(out, context);
            // Also at the end of a turn: a question just put in flight asks the store at its first poll.
            if out.len() >= ENOUGH_BYTES {
                return;
            }
            match Pin::new(&mut self.in_flight).poll_next(context) {
                Poll::Ready(Some(results)) => out.extend_from_slice(&results),
                Poll::Ready(None) | Poll::Pending => return,
            }
        }
    }

    /// Decides questions that have arrived while there is room for their answers.
    fn decide_next(&mut self, out: &mut Vec<u8>, context: &mut Context<'_>) {
        let (service, asked) = (self.service.current(), self.context.clone());
        let mut round = None;
        current_method::set("ShouldAllowStream");
        while self.wants_more(out) && self.in_flight.len() < MAX_IN_FLIGHT && self.has_more(context) {
            let round = round.get_or_insert_with(|| service.limiter.round());
            let rest = std::mem::take(&mut self.rest);
            let mut fields = MessageFields::new(&rest);
            loop {
                let mut later = Vec::new();
                let places = MAX_IN_FLIGHT.saturating_sub(self.in_flight.len());
                let next = || self.next_in(&mut fields).map(identified);
                let most = turn::remaining().min(TOGETHER).min(places);
                let start = out.len();
                let decided =
                    service.decide_next(round, (out, &mut later), RESPONSE_FIELD, &asked, most, next);
                turn::spend(decided);
                if !(self.in_flight.is_empty() && later.is_empty()) {
                    self.put_in_flight(&service, &rest, out.split_off(start), start, later);
                }
                if decided == 0 || !self.wants_more(out) || self.in_flight.len() >= MAX_IN_FLIGHT {
                    break;
                }
            }
            self.rest = rest.slice(rest.len() - fields.left()..);
        }
    }

    /// Puts ready and pending results in flight, in order. `start` is the offset of the ready ones. Pending questions
    /// borrow from their `message`, so it counts as buffered.
    fn put_in_flight(
        &mut self,
        service: &Arc<Decisions<S>>,
        message: &Bytes,
        there: Vec<u8>,
        start: usize,
        later: Vec<LaterResult>,
    ) {
        let mut from = 0;
        for later in later {
            let at = later.at - start;
            self.put_results(there.get(from..at));
            let (service, held) = (Arc::clone(service), message.clone());
            self.in_flight.push_back(Box::pin(service.result(later).inspect(move |_| drop(held))));
            from = at;
        }
        self.put_results(there.get(from..));
    }

    fn put_results(&mut self, results: Option<&[u8]>) {
        if let Some(results) = results.filter(|results| !results.is_empty()) {
            self.in_flight.push_back(Box::pin(std::future::ready(results.to_vec())));
        }
    }

    fn wants_more(&self, out: &[u8]) -> bool {
        out.len() < ENOUGH_BYTES && turn::remaining() > 0
    }

    /// True if a message has unread questions; takes the next message if necessary.
    fn has_more(&mut self, context: &mut Context<'_>) -> bool {
        while self.rest.is_empty() {
            if let Some(message) = self.last.pop_front() {
                self.rest = message;
                continue;
            }
            if self.end.is_some() {
                break;
            }
            match self.messages.poll_next(context) {
                Poll::Ready(Some(Ok(message))) => match self.judge.as_ref().and_then(Judge::now) {
                    Some(status) => self.end = Some(Err(status)),
                    None => self.rest = message,
                },
                Poll::Ready(Some(Err(status))) => self.end = Some(Err(status)),
                Poll::Ready(None) => self.end = Some(Ok(())),
                Poll::Pending => return false,
            }
        }
        !self.rest.is_empty()
    }

    /// The next question of a message. A malformed one ends the stream.
    fn next_in<'a>(&mut self, fields: &mut MessageFields<'a>) -> Option<&'a [u8]> {
        loop {
            match fields.next() {
                Ok(Some((1, FieldValue::Bytes(question)))) => return Some(question),
                Ok(Some((1, _))) | Err(_) => {
                    *fields = MessageFields::new(&[]);
                    self.last.clear();
                    let malformed = Malformed("it is no list of questions");
                    self.end = Some(Err(status::malformed(malformed)));
                    return None;
                }
                Ok(Some(_)) => {}
                Ok(None) => return None,
            }
        }
    }
}

/// Splits an entry into its id and its question, or the error that made it unreadable.
fn identified(streamed: &[u8]) -> (u64, Result<&[u8], Status>) {
    let (mut id, mut question) = (0, [].as_slice());
    let mut fields = MessageFields::new(streamed);
    let mut read = || -> Result<(), Malformed> {
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => id = value.number()?,
                2 => question = value.bytes()?,
                _ => {}
            }
        }
        Ok(())
    };
    let read = read();
    (id, read.map(|()| question).map_err(status::malformed))
}

fn trailers(end: Result<(), Status>) -> HeaderMap {
    let Err(status) = end else { return reply::ok() };
    let mut trailers = HeaderMap::new();
    // Only metadata could be refused, and there is none.
    let _ = status.add_header(&mut trailers);
    trailers
}
