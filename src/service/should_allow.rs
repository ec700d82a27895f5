//! `ShouldAllow`: one question, one answer.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use tonic::Status;

use super::call::{self, Call, Sent};
use super::messages::Messages;
use super::wire::{self, Question};
use super::{RateLimit, Reply, status};
use crate::limiter::Answer;
use crate::store::Store;

/// Bytes of an ordinary answer.
const ANSWER_BYTES: usize = 123;

impl<S: Store> RateLimit<S> {
    /// Answers one question; at once, where it has arrived and the store can.
    pub fn should_allow<B: Sent>(self: &Arc<Self>, request: http::Request<B>) -> Call {
        let (head, body) = request.into_parts();
        let deadline = match call::deadline_of(&head.headers) {
            Ok(deadline) => deadline,
            Err(status) => return Call::done(Err(status)),
        };
        let mut messages = Messages::of(body, self.largest);
        if S::AT_ONCE
            && let Poll::Ready(message) = messages.poll_only(&mut Context::from_waker(Waker::noop()))
        {
            return Call::done(message.and_then(|message| self.answer_at_once(&message, deadline)));
        }
        let service = Arc::clone(self);
        Call::waiting(&self.deadlines, deadline, async move {
            let message = poll_fn(|context| messages.poll_only(context)).await?;
            let question = Question::read(&message, None).map_err(status::malformed)?;
            let ask = question.ask(deadline);
            let answer = service.limiter.decide(&ask).await.map_err(status::of)?;
            Ok(service.reply(&answer, ask.cost))
        })
    }

    fn answer_at_once(
        &self,
        message: &[u8],
        deadline: Option<Instant>,
    ) -> Result<http::Response<Reply>, Status> {
        let question = Question::read(message, None).map_err(status::malformed)?;
        let ask = question.ask(deadline);
        let answer = self.limiter.round().decide(&ask).map_err(status::of)?;
        Ok(self.reply(&answer, ask.cost))
    }

    fn reply(&self, answer: &Answer<'_>, cost: u64) -> http::Response<Reply> {
        Reply::message(ANSWER_BYTES, |out| wire::response(out, answer, cost, &self.templates))
    }
}
