//! One script call, of whatever kind: requests that leave together, one round trip, an answer for each.
//!
//! A call begins with one request. Calls that are ready at the same moment are joined, where their kind allows it.

mod group;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisError, Value};
use smallvec::SmallVec;

pub(super) use self::group::CallSlots;
use super::callers::{Callers, Fate, Replies, WaitingCaller};
use super::connect::Connection;
use super::context::LinkContext;
use super::evaluate::{ScriptName, evaluate};
use super::fault::Fault;
use super::source::Script;
use crate::StoreError;
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;
use weir_units::Micros;

/// What a node is asked, with its keys already built: a decision, or something about a lease or a queue.
pub(super) trait ScriptRequest: Send + Sync + Sized + 'static {
    /// What a node answers to it.
    type Answer: Send + 'static;

    /// Which scripts can answer it. Only calls of one form are joined.
    type Form: Copy + PartialEq + Send + Sync + 'static;

    /// The form that it has by itself.
    fn form(&self) -> Self::Form;

    /// The slot of all its keys in a cluster.
    fn slot(&self) -> u16;

    /// How much work it is for the node, in keys.
    fn weight(&self) -> usize;

    /// Orders calls, and may change their forms, before those of one form are joined.
    fn arrange(_calls: &mut [ScriptCall<Self>]) {}

    /// Whether both may be in one call, which is of one form.
    fn is_like(&self, _other: &Self) -> bool {
        true
    }

    /// Whether a call of `others`, which are like it, has room for it.
    fn fits(&self, _others: &[Arc<Self>]) -> bool {
        true
    }

    /// How long a call waits for its node.
    fn deadline(context: &LinkContext) -> Duration;

    /// The script that answers `requests`, which are of one form.
    fn script(form: Self::Form, requests: &[Arc<Self>]) -> &'static Script;

    /// The command that asks for all of them.
    fn command(script: ScriptName<'_>, requests: &[Arc<Self>], terms: CallTerms) -> Cmd;

    /// The answer to each of them; or why nothing of the reply can be used.
    fn decode(requests: &[Arc<Self>], reply: &Value) -> Result<Replies<Self::Answer>, StoreError>;
}

/// What a call says besides its requests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallTerms {
    /// The time, where the node shall not read its own clock.
    pub(super) now: Option<Micros>,
    /// Whether the keys are of several slots of a cluster; then no key is declared.
    pub(super) spans: bool,
    /// Whether the node is asked on behalf of another one, during a slot's migration.
    pub(super) asking: bool,
}

/// Requests that leave in one script call; at least one.
pub(super) struct ScriptCall<R: ScriptRequest> {
    requests: SmallVec<[Arc<R>; 1]>,
    callers: Callers<R::Answer>,
    /// Which script answers it: that of its requests, or one that answers others too.
    pub(super) form: R::Form,
    asking: bool,
    /// Whether the call must be of its own slot.
    alone: bool,
    spans: bool,
}

/// How a request is sent on, after what the nodes said to it before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Redirection {
    /// As in [`CallTerms`].
    pub(super) asking: bool,
    /// Whether its call must be of its own slot.
    pub(super) alone: bool,
}

/// Asks a node for all of `requests` over `connection`.
pub(super) async fn exchange<R: ScriptRequest>(
    connection: &mut Connection,
    form: R::Form,
    requests: &[Arc<R>],
    terms: CallTerms,
) -> Result<Value, RedisError> {
    let script = R::script(form, requests);
    evaluate(connection, script, terms.asking, |name| R::command(name, requests, terms)).await
}

impl<R: ScriptRequest> ScriptCall<R> {
    /// A call of one request.
    pub(super) fn new(request: &Arc<R>, how: Redirection, caller: WaitingCaller<R::Answer>) -> Self {
        let Redirection { asking, alone } = how;
        let (form, requests) = (request.form(), SmallVec::from_buf([Arc::clone(request)]));
        Self { requests, callers: Callers::of(caller), form, asking, alone: alone || asking, spans: false }
    }

    /// Its first request.
    pub(super) fn first(&self) -> Option<&R> {
        self.requests.first().map(|first| &**first)
    }

    /// How much work it is for the node, in keys.
    pub(super) fn weight(&self) -> usize {
        self.requests.iter().map(|request| request.weight()).sum()
    }

    /// Whether its callers have given up.
    pub(super) fn is_abandoned(&self) -> bool {
        self.callers.are_gone()
    }

    /// Ends it without asking the node.
    pub(super) fn fail(self, fault: &Fault) {
        self.callers.fail(fault);
    }

    /// Sends the call and hands every request its answer. `host` is the node's.
    pub(super) async fn run(
        self,
        mut connection: Connection,
        context: &LinkContext,
        deadlines: &Deadlines,
        host: &str,
    ) -> Fate {
        let terms = CallTerms { now: context.clock.explicit(), spans: self.spans, asking: self.asking };
        let exchange = exchange(&mut connection, self.form, &self.requests, terms);
        let deadline = monotonic() + R::deadline(context);
        let Ok(reply) = deadlines.until(deadline, exchange).await else {
            self.callers.fail(&Fault::Failed(StoreError::Timeout));
            return Fate::Silent;
        };
        // Other nodes' answers that have arrived, and requests, are read first: a connection writes what
        // it has to say at once.
        tokio::task::yield_now().await;
        match reply {
            Ok(reply) => self.callers.answer(R::decode(&self.requests, &reply), self.spans),
            Err(error) => self.callers.fail(&Fault::of(&error, host)),
        }
    }
}

#[cfg(test)]
mod tests;
