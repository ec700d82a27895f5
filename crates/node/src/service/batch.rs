//! `ShouldAllowBatch`: many questions in one call, each decided for itself.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use tonic::Status;
use weir_grpc::{BegunCall, Call, CallContext, IncomingCall, PREFIX, Reply, turn};
use weir_store::{Store, TOGETHER, at_once};

use super::several::LaterResult;
use super::wire::MessageFields;
use super::{DecisionService, Decisions, called, status};
use crate::limiter::{LimiterError, check_batch};

/// Bytes of a typical result.
const RESULT_BYTES: usize = 80;

/// Field number of the response in a result; the error's is the next one.
const RESPONSE_FIELD: u32 = 1;

impl<S: Store> DecisionService<S> {
    /// Answers up to a thousand questions; at once, if the message has arrived and the store answers at once.
    pub fn should_allow_batch(self: &Arc<Self>, call: IncomingCall) -> BegunCall {
        let IncomingCall { context, mut messages } = call;
        match at_once(messages.only()).transpose() {
            Ok(Some(message)) => match count(&message) {
                Ok(count) if turn::exceeds(count) => BegunCall::Postponed(message),
                Ok(count) => BegunCall::Call(self.current().decide_batch(&message, count, &context)),
                Err(status) => BegunCall::Call(status.into()),
            },
            Ok(None) => {
                let service = Arc::clone(self);
                BegunCall::Call(Call::waiting(&self.deadlines, context.deadline, async move {
                    let message = messages.only().await?;
                    let count = count(&message)?;
                    turn::wait_for(count).await;
                    service.current().decide_batch(&message, count, &context).await
                }))
            }
            Err(status) => BegunCall::Call(status.into()),
        }
    }
}

impl<S: Store> Decisions<S> {
    /// Sends all questions to the store before any answer is awaited, in order and from one task, so that the Redis
    /// client sends those for one node together.
    fn decide_batch(self: &Arc<Self>, batch: &[u8], count: usize, context: &CallContext) -> Call {
        turn::spend(count);
        let mut later = Vec::new();
        called::serves("ShouldAllowBatch");
        let mut round = self.limiter.round();
        let reply = Reply::message(count * RESULT_BYTES, |out| {
            let start = out.len();
            let mut questions = questions(batch).map(|question| (0, Ok(question)));
            let mut decide_next = |out: &mut Vec<u8>| {
                let next = || questions.next();
                self.decide_next(&mut round, (out, &mut later), RESPONSE_FIELD, context, TOGETHER, next)
            };
            while decide_next(out) > 0 {}
            later.iter_mut().for_each(|later: &mut LaterResult| later.at -= start);
        });
        match reply {
            Reply::Message(there) if !later.is_empty() => {
                let service = Arc::clone(self);
                let there = there.slice(PREFIX.min(there.len())..);
                let all = async move { Ok(service.complete(there, later).await) };
                Call::waiting(&self.deadlines, context.deadline, all)
            }
            reply => Call::done(Ok(reply)),
        }
    }

    /// Merges the ready results and the pending ones, in order.
    async fn complete(self: Arc<Self>, there: Bytes, later: Vec<LaterResult>) -> Reply {
        let places: Vec<usize> = later.iter().map(|later| later.at).collect();
        let results = join_all(later.into_iter().map(|later| Arc::clone(&self).result(later))).await;
        let bytes = there.len() + results.iter().map(Vec::len).sum::<usize>();
        Reply::message(bytes, |out| {
            let mut from = 0;
            for (at, result) in places.into_iter().zip(results) {
                out.extend_from_slice(there.get(from..at).unwrap_or(&[]));
                out.extend_from_slice(&result);
                from = at;
            }
            out.extend_from_slice(there.get(from..).unwrap_or(&[]));
        })
    }
}

/// Returns the number of questions of a batch; 0 if it will be refused.
pub(super) fn decisions_of(batch: &[u8]) -> usize {
    count(batch).unwrap_or(0)
}

/// Counts the questions of a batch, and checks the bound. A malformed question affects only itself.
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

/// The questions of a batch that was counted.
fn questions(batch: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut fields = MessageFields::of(batch);
    let fields = std::iter::from_fn(move || fields.next().ok().flatten());
    fields.filter(|(number, _)| *number == 1).filter_map(|(_, value)| value.bytes().ok())
}
