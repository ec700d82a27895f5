//! Calls about leases or queues on their way to a node and back. Those that are ready at the same moment share a script
//! call, where their kind allows it.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisError, Value};
use tokio::sync::oneshot;

use super::call::{CallSlots, Fate, evaluate};
use super::connect::Connection;
use super::context::LinkContext;
use super::fault::Fault;
use super::replies::Replies;
use super::source::Script;
use crate::StoreError;
use weir_time::clock::monotonic;
use weir_time::deadlines::{Deadlines, Passed};
use weir_units::Micros;

/// What a node is asked, with its keys already built.
pub(super) trait SharedRequest: Send + Sync + Sized + 'static {
    /// What it answers.
    type Answer: Send + 'static;

    /// The slot of all its keys in a cluster.
    fn slot(&self) -> u16;

    /// How much work it is for the node.
    fn weight(&self) -> usize;

    /// Its script.
    fn script(&self) -> &'static Script;

    /// Whether it is of the same kind as `other`, with the same script.
    fn is_like(&self, other: &Self) -> bool;

    /// Whether it may be in one call with `others`, which are like it.
    fn joins(&self, others: &[Arc<Self>]) -> bool;

    /// How long a call waits for its node.
    fn deadline(context: &LinkContext) -> Duration;

    /// The command for all of them, by its name and what it names the script by. If they span slots of a cluster, it
    /// declares no key.
    fn command(calls: &[Arc<Self>], names: (&str, &str), now: Option<Micros>, spans: bool) -> Cmd;

    /// The answer to each of them, or why it alone failed; or why nothing of the reply can be used.
    fn decode(
        calls: &[Arc<Self>],
        reply: &Value,
    ) -> Result<Vec<Result<Self::Answer, StoreError>>, StoreError>;
}

/// Where an answer goes.
type SharedReply<R> = oneshot::Sender<Result<<R as SharedRequest>::Answer, Fault>>;

/// A request that waits for its node's answer.
pub(super) struct SharedJob<R: SharedRequest> {
    pub(super) request: Arc<R>,
    /// Whether the node is asked on behalf of another one, during a slot's migration.
    pub(super) asking: bool,
    /// Whether its call must be of its own slot.
    pub(super) alone: bool,
    pub(super) reply: SharedReply<R>,
}

/// Requests that leave in one script call.
pub(super) struct SharedCall<R: SharedRequest> {
    requests: Vec<Arc<R>>,
    replies: Replies<R::Answer>,
    asking: bool,
    alone: bool,
    /// Whether its keys are of several slots of a cluster.
    spans: bool,
}

impl<R: SharedRequest> SharedCall<R> {
    /// Sorts jobs into calls. Those that may share one keep their order.
    pub(super) fn group(jobs: Vec<SharedJob<R>>, slots: CallSlots) -> Vec<Self> {
        let mut calls: Vec<Self> = Vec::with_capacity(1);
        for SharedJob { request, asking, alone, reply } in jobs {
            let alone = alone || asking;
            // Only the last call of its kind: what came later must not be done earlier.
            let fits = |call: &&mut Self| call.has_kind_of(&request, (asking, alone), slots);
            match calls.iter_mut().rev().find(fits).filter(|call| request.joins(&call.requests)) {
                Some(call) => {
                    call.spans |= call.requests.first().is_some_and(|first| first.slot() != request.slot());
                    call.requests.push(request);
                    call.replies.push(reply);
                }
                None => {
                    let mut replies = Replies::default();
                    replies.push(reply);
                    calls.push(Self { requests: vec![request], replies, asking, alone, spans: false });
                }
            }
        }
        calls
    }

    fn has_kind_of(&self, request: &R, (asking, alone): (bool, bool), slots: CallSlots) -> bool {
        let Some(first) = self.requests.first() else { return false };
        let spans = slots == CallSlots::Together && !alone;
        (self.asking, self.alone) == (asking, alone)
            && first.is_like(request)
            && (spans || first.slot() == request.slot())
    }

    /// Sends the call and hands every request its answer.
    pub(super) async fn run(
        self,
        mut connection: Connection,
        context: &LinkContext,
        deadlines: &Deadlines,
        host: &str,
    ) -> Fate {
        let Some(script) = self.requests.first().map(|first| first.script()) else { return Fate::Answered };
        let now = context.clock.explicit();
        let command = |name: &str, script: &str| R::command(&self.requests, (name, script), now, self.spans);
        let exchange = evaluate(&mut connection, script, self.asking, command);
        let deadline = monotonic() + R::deadline(context);
        match deadlines.until(deadline, exchange).await {
            Ok(Ok(reply)) => self.replies.answer(R::decode(&self.requests, &reply), self.spans),
            Ok(Err(error)) => {
                let fault = fault(&error, host);
                let fate = if matches!(fault, Fault::Broken(_)) { Fate::Broken } else { Fate::Answered };
                self.replies.fail(&fault);
                fate
            }
            Err(Passed) => {
                self.replies.fail(&Fault::Failed(StoreError::Timeout));
                Fate::Silent
            }
        }
    }
}

/// An error of a key that is the reply to one of several calls.
pub(super) fn reason_of(reason: &str) -> StoreError {
    if reason.starts_with("WRONGTYPE") {
        StoreError::Unreadable(reason.into())
    } else {
        StoreError::Refused(reason.into())
    }
}

fn fault(error: &RedisError, host: &str) -> Fault {
    match error.code() {
        Some("WRONGTYPE") => Fault::Failed(StoreError::Unreadable(error.to_string().into())),
        _ => Fault::of(error, host),
    }
}
