//! `ShouldAllow`: one question, one answer.
//!
//! Where the store answers at once, questions that have arrived together are answered together: they share
//! what a round costs, and the store fetches what it needs for all of them.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use smallvec::SmallVec;
use tonic::Status;

use super::call::{self, Call, Sent};
use super::messages::{Messages, PREFIX};
use super::wire::{self, Question};
use super::{RateLimit, Reply, reply, status};
use crate::limiter::Answer;
use crate::store::{Store, TOGETHER};

/// Bytes of an ordinary answer.
const ANSWER_BYTES: usize = 123;

/// A question that has arrived and is to be answered at once.
pub struct Posed {
    message: Bytes,
    deadline: Option<Instant>,
}

/// A call that has begun.
pub enum Begun {
    /// Its question is here, and [`RateLimit::answer_each`] answers it.
    Posed(Posed),
    /// It goes its own way.
    Call(Call),
}

impl<S: Store> RateLimit<S> {
    /// Begins a call that asks one question. Nothing is decided yet, where it has arrived and the store answers
    /// at once.
    pub fn should_allow<B: Sent>(self: &Arc<Self>, request: http::Request<B>) -> Begun {
        let deadline = match call::deadline_of(request.headers()) {
            Ok(deadline) => deadline,
            Err(status) => return Begun::Call(Call::failed(status)),
        };
        let mut messages = Messages::of(request.into_body(), self.largest);
        let arrived = match messages.poll_only(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(message)) if S::AT_ONCE => return Begun::Posed(Posed { message, deadline }),
            Poll::Ready(Ok(message)) => Some(message),
            Poll::Ready(Err(status)) => return Begun::Call(Call::failed(status)),
            Poll::Pending => None,
        };
        if let Some(reply) = arrived.as_ref().and_then(|message| self.answer_known(message, deadline)) {
            return Begun::Call(Call::done(Ok(reply)));
        }
        let service = Arc::clone(self);
        Begun::Call(Call::waiting(&self.deadlines, deadline, async move {
            let message = match arrived {
                Some(message) => message,
                None => poll_fn(|context| messages.poll_only(context)).await?,
            };
            let question = Question::read(&message, None).map_err(status::malformed)?;
            let ask = question.ask(deadline);
            let answer = service.limiter.decide(&ask).await.map_err(status::of)?;
            Ok(service.reply(&answer, ask.cost))
        }))
    }

    /// The answer that need not be waited for, although others have to be: neither a box nor a place among
    /// those that wait is made for it.
    fn answer_known(&self, message: &[u8], deadline: Option<Instant>) -> Option<Reply> {
        let question = self.limiter.knows_some().then(|| Question::read(message, None).ok())??;
        let ask = question.ask(deadline);
        let answer = self.limiter.decide_known(&ask)?;
        Some(self.reply(&answer, ask.cost))
    }

    fn reply(&self, answer: &Answer<'_>, cost: u64) -> Reply {
        Reply::message(ANSWER_BYTES, |out| wire::response(out, answer, cost, &self.templates))
    }

    /// Answers several questions, each for itself and in their order, and gives `each` the answers (messages with
    /// their prefixes) with the number of their question. More than [`TOGETHER`] at a time save nothing more.
    pub fn answer_each(&self, posed: &[Posed], mut each: impl FnMut(usize, Result<&[u8], Status>)) {
        let mut questions = SmallVec::<[(usize, Question<'_>, Option<Instant>); TOGETHER]>::new();
        for (number, Posed { message, deadline }) in posed.iter().enumerate() {
            let like = questions.last().map(|(_, question, _)| question);
            match Question::read(message, like) {
                Ok(question) => questions.push((number, question, *deadline)),
                Err(malformed) => each(number, Err(status::malformed(malformed))),
            }
        }
        let mut asked = questions.iter();
        let asks = questions.iter().map(|(_, question, deadline)| question.ask(*deadline));
        let mut message = Vec::with_capacity(PREFIX + ANSWER_BYTES);
        self.limiter.round().decide_each(asks, |answer| {
            let Some((number, question, _)) = asked.next() else { return };
            let answer = answer.map_err(status::of).map(|answer| {
                message.clear();
                reply::frame(&mut message, |out| {
                    wire::response(out, &answer, question.cost(), &self.templates);
                });
            });
            each(*number, answer.map(|()| &message[..]));
        });
    }
}
