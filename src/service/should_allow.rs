//! `ShouldAllow`: one question, one answer.
//!
//! Where the store answers at once, questions that have arrived together are answered together: they share
//! what a round costs, and the store fetches what it needs for all of them. So are those whose answers another
//! store knows; the rest then waits, each for itself.

use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;
use tonic::Status;
use weir_grpc::{BegunCall, Call, IncomingCall, PREFIX, PendingCall, Reply, Unanswered, reply, turn};

use super::wire::{self, WireQuestion};
use super::{DecisionService, status};
use crate::limiter::{Lent, LimiterError};
use crate::store::{Store, TOGETHER, at_once};

/// Bytes of an ordinary answer.
const ANSWER_BYTES: usize = 123;

impl<S: Store> DecisionService<S> {
    /// Begins a call that asks one question. Nothing is decided yet if it has arrived and may be answered
    /// together with others.
    pub fn should_allow(self: &Arc<Self>, call: IncomingCall) -> BegunCall {
        let IncomingCall { context, mut messages } = call;
        let arrived = match at_once(messages.only()).transpose() {
            Ok(Some(message)) if S::AT_ONCE || self.limiter.knows_some() => {
                return BegunCall::Pending(PendingCall { message, context });
            }
            Ok(arrived) => arrived,
            Err(status) => return BegunCall::Call(status.into()),
        };
        let (service, deadline) = (Arc::clone(self), context.deadline);
        turn::spend(1);
        BegunCall::Call(Call::waiting(&self.deadlines, deadline, async move {
            let message = match arrived {
                Some(message) => message,
                None => messages.only().await?,
            };
            service.reply_to(&message, deadline).await
        }))
    }

    /// Goes on with a question that has no answer yet. It is taken, and can be so once.
    pub fn wait(self: &Arc<Self>, pending: &mut PendingCall) -> Call {
        let (service, deadline) = (Arc::clone(self), pending.context.deadline);
        let message = std::mem::take(&mut pending.message);
        Call::waiting(&self.deadlines, deadline, async move { service.reply_to(&message, deadline).await })
    }

    async fn reply_to(&self, message: &[u8], deadline: Option<Instant>) -> Result<Reply, Status> {
        let (answer, cost) = self.answer(message, deadline).await?;
        Ok(Reply::message(ANSWER_BYTES, |out| wire::response(out, &answer, cost, &self.templates)))
    }

    /// Answers several questions, each for itself and in their order, and gives `each` the answers (messages with
    /// their prefixes) with the number of their question. More than [`TOGETHER`] at a time save nothing more. Where
    /// the store does not answer at once, those whose answers it does not know stay unanswered.
    pub fn answer_each(
        &self,
        pending: &[PendingCall],
        mut each: impl FnMut(usize, Result<&[u8], Status>),
    ) -> Unanswered {
        let mut unanswered = Unanswered::new();
        let mut questions = SmallVec::<[(usize, WireQuestion<'_>, Option<Instant>); TOGETHER]>::new();
        for (number, PendingCall { message, context }) in pending.iter().enumerate() {
            let like = questions.last().map(|(_, question, _)| question);
            match WireQuestion::read(message, like) {
                Ok(question) => questions.push((number, question, context.deadline)),
                Err(malformed) => each(number, Err(status::malformed(malformed))),
            }
        }
        let mut asked = questions.iter();
        let asks = questions.iter().map(|(_, question, deadline)| question.ask(*deadline));
        let mut message = Vec::with_capacity(PREFIX + ANSWER_BYTES);
        let mut answer_one = |answer: Option<Result<Lent<'_, '_>, LimiterError>>| {
            let Some((number, question, _)) = asked.next() else { return };
            let Some(answer) = answer else { return unanswered.push(*number) };
            let answer = answer.map_err(status::of).map(|answer| {
                message.clear();
                reply::frame(&mut message, |out| {
                    wire::response(out, &answer, question.cost(), &self.templates);
                });
            });
            each(*number, answer.map(|()| &message[..]));
        };
        let mut round = self.limiter.round();
        if S::AT_ONCE {
            round.decide_each(asks, |answer| answer_one(Some(answer)));
        } else {
            round.decide_known(asks, answer_one);
        }
        unanswered
    }
}
