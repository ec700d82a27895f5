//! `ShouldAllowBatch`: many questions in one call, each decided for itself.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::join_all;
use tonic::Status;
use weir_grpc::{BegunCall, Call, CallContext, IncomingCall, Reply, turn};

use super::wire::{self, MessageFields, WireQuestion};
use super::{DecisionService, status};
use crate::algorithm::LimitVerdict;
use crate::limiter::{Answer, LimiterError, check_batch};
use crate::store::{Store, TOGETHER, at_once};

/// Bytes of an ordinary result.
const RESULT_BYTES: usize = 80;

/// Where a result has its response, and after that its error.
const RESPONSE_FIELD: u32 = 1;

impl<S: Store> DecisionService<S> {
    /// Answers up to a thousand questions; at once, where they have arrived and the store can.
    pub fn should_allow_batch(self: &Arc<Self>, call: IncomingCall) -> BegunCall {
        let IncomingCall { context: CallContext { deadline, .. }, mut messages } = call;
        let arrived = match at_once(messages.only()).transpose() {
            Ok(arrived) => arrived,
            Err(status) => return BegunCall::Call(status.into()),
        };
        if let Some(message) = &arrived {
            match count(message) {
                Ok(count) if turn::exceeds(count) => return BegunCall::Postponed(message.clone()),
                Ok(count) if S::AT_ONCE => {
                    return BegunCall::Call(Call::done(
                        Ok(self.decide_all_at_once(message, count, deadline)),
                    ));
                }
                Ok(_) => {}
                Err(status) => return BegunCall::Call(status.into()),
            }
        }
        let service = Arc::clone(self);
        BegunCall::Call(Call::waiting(&self.deadlines, deadline, async move {
            let message = match arrived {
                Some(message) => message,
                None => messages.only().await?,
            };
            let count = count(&message)?;
            turn::wait_for(count).await;
            if S::AT_ONCE {
                return Ok(service.decide_all_at_once(&message, count, deadline));
            }
            Ok(service.decide_all(&message, count, deadline).await)
        }))
    }

    /// In order, one after the other.
    fn decide_all_at_once(&self, batch: &[u8], count: usize, deadline: Option<Instant>) -> Reply {
        turn::spend(count);
        let mut round = self.limiter.round();
        Reply::message(count * RESULT_BYTES, |out| {
            let mut questions = questions(batch).map(|question| (0, Ok(question)));
            let most = TOGETHER;
            while self.decide_next(&mut round, out, RESPONSE_FIELD, deadline, most, || questions.next()) > 0 {
            }
        })
    }

    /// All questions are put to the store before any answer is awaited, in order and from one task: Redis
    /// is sent what is for one node together.
    async fn decide_all(&self, batch: &Bytes, count: usize, deadline: Option<Instant>) -> Reply {
        turn::spend(count);
        let answers = questions(batch).map(|question| self.answer(question, deadline));
        let answers = join_all(answers).await;
        Reply::message(count * RESULT_BYTES, |out| {
            answers.iter().for_each(|answer| self.push(out, RESPONSE_FIELD, 0, answer));
        })
    }

    /// The answer to one question, with its cost.
    pub(super) async fn answer(
        &self,
        question: &[u8],
        deadline: Option<Instant>,
    ) -> Result<(Answer<'_>, u64), Status> {
        let question = WireQuestion::read(question, None).map_err(status::malformed)?;
        let ask = question.ask(deadline);
        Ok((self.limiter.decide(&ask).await.map_err(status::of)?, ask.cost))
    }

    /// Appends how a question ended: its `id`, which is 0 where there is none, then the response in field
    /// `first`, or the error in the one after it.
    #[inline]
    pub(super) fn push<L: AsRef<[LimitVerdict]>>(
        &self,
        out: &mut Vec<u8>,
        first: u32,
        id: u64,
        answered: &Result<(Answer<'_, L>, u64), Status>,
    ) {
        let write = answered
            .as_ref()
            .map(|(answer, cost)| |out: &mut Vec<u8>| wire::response(out, answer, *cost, &self.templates));
        wire::result(out, first, |out| wire::number(out, 1, id), write);
    }
}

/// How many questions a batch has, if it can be read as far as that, and they are neither none nor too
/// many. What cannot be read within a question is the end of that question only.
fn count(batch: &[u8]) -> Result<usize, Status> {
    let (mut count, mut fields) = (0, MessageFields::of(batch));
    while let Some((number, value)) = fields.next().map_err(status::malformed)? {
        if number == 1 {
            value.bytes().map_err(status::malformed)?;
            count += 1;
        }
    }
    check_batch(count).map_err(|invalid| status::of(LimiterError::Invalid(invalid)))?;
    Ok(count)
}

/// The questions of a batch that could be counted.
fn questions(batch: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut fields = MessageFields::of(batch);
    let fields = std::iter::from_fn(move || fields.next().ok().flatten());
    fields.filter(|(number, _)| *number == 1).filter_map(|(_, value)| value.bytes().ok())
}
