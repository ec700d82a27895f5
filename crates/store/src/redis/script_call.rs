//! A script call of any kind: a batch of requests, one round trip, an answer for each.
//!
//! A call starts with one request. Calls that are ready at the same moment are joined if their kind allows it.

mod group;

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Cmd, RedisError, Value};
use smallvec::SmallVec;

pub(super) use self::group::CallSlots;
use super::callers::{Callers, Fate, Replies, WaitingCaller};
use super::connect::Connection;
use super::context::LinkContext;
use super::evaluate::{ScriptName, evaluate};
use super::fault::{Fault, node_failure};
use crate::StoreError;
use crate::cost::ScriptCost;
use crate::scripts::Script;
use weir_core::key;
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;
use weir_units::Micros;

/// A request to a node, with its keys already built: a decision, or an operation on a lease or a queue.
pub(super) trait ScriptRequest: Send + Sync + Sized + 'static {
    type Answer: Send + 'static;

    /// Identifies the scripts that can answer it. Only calls of one form are joined.
    type Form: Copy + PartialEq + Send + Sync + 'static;

    fn target(&self) -> &ScriptTarget<Self::Form>;

    /// Returns the worst time that it takes the node.
    fn cost(&self) -> ScriptCost;

    /// Sorts calls, and may change their forms, before those of one form are joined.
    fn arrange(_calls: &mut [ScriptCall<Self>]) {}

    /// True if both may share a call. Their forms are equal.
    fn is_like(&self, _other: &Self) -> bool {
        true
    }

    /// True if a call of `others`, which are like it, has room for it.
    fn fits(&self, _others: &[Arc<Self>]) -> bool {
        true
    }

    fn deadline(context: &LinkContext) -> Duration;

    /// Returns the timeout of a call of this request, if it is shorter than that of others of its kind.
    fn patience(&self, context: &LinkContext) -> Duration {
        Self::deadline(context)
    }

    fn script(form: Self::Form, requests: &[Arc<Self>]) -> &'static Script;

    fn command(script: ScriptName<'_>, requests: &[Arc<Self>], terms: CallTerms) -> Cmd;

    /// Decodes the answer to each of them. An error means that the whole reply is unusable.
    fn decode(requests: &[Arc<Self>], reply: Value) -> Result<Replies<Self::Answer>, StoreError>;
}

/// Slot of a request, and scripts that can answer it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptTarget<F> {
    /// The cluster slot of all its keys; 0 without a cluster.
    pub(super) slot: u16,
    pub(super) form: F,
}

impl<F> ScriptTarget<F> {
    /// Creates the target of a request whose keys have this tag, on a cluster or a standalone server.
    pub(super) fn new(form: F, tag: u128, cluster: bool) -> Self {
        Self { slot: slot_of(tag, cluster), form }
    }
}

/// The slot of keys with this tag; 0 without a cluster.
pub(super) fn slot_of(tag: u128, cluster: bool) -> u16 {
    if cluster { key::slot(tag) } else { 0 }
}

/// Parameters of a call besides its requests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CallTerms {
    /// The time, if the node must not use its own clock.
    pub(super) now: Option<Micros>,
    /// True if the keys are of several cluster slots; then no key is declared.
    pub(super) spans: bool,
    /// True after an ASK redirect: ASKING is sent first.
    pub(super) asking: bool,
}

/// A batch of at least one request, sent as one script call.
pub(super) struct ScriptCall<R: ScriptRequest> {
    requests: SmallVec<[Arc<R>; 1]>,
    callers: Callers<R::Answer>,
    /// The form of its script: that of its requests, or a more general one.
    pub(super) form: R::Form,
    asking: bool,
    /// True if the call may have keys of one slot only.
    alone: bool,
    spans: bool,
    cost: ScriptCost,
    time: CallTime,
}

/// Arrival of a request, and deadline of its caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallTime {
    pub(super) begun: Instant,
    pub(super) deadline: Instant,
}

/// Redirects of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Redirection {
    pub(super) asking: bool,
    /// True if its call may have keys of one slot only.
    pub(super) alone: bool,
}

/// Sends all of `requests` to a node as one call over `connection`.
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
    pub(super) fn new(
        request: &Arc<R>,
        how: Redirection,
        time: CallTime,
        caller: WaitingCaller<R::Answer>,
    ) -> Self {
        let Redirection { asking, alone } = how;
        let (form, cost, requests) =
            (request.target().form, request.cost(), SmallVec::from_buf([Arc::clone(request)]));
        let (callers, alone) = (Callers::new(caller), alone || asking);
        Self { requests, callers, form, asking, alone, spans: false, cost, time }
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// True if its caller waits no more, whether or not it has noticed. Of a call of one request.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.time.deadline <= now
    }

    pub(super) fn first(&self) -> Option<&R> {
        self.requests.first().map(|first| &**first)
    }

    /// Returns the worst time that it takes the node.
    pub(super) fn cost(&self) -> ScriptCost {
        self.cost
    }

    /// Returns when its oldest request came.
    pub(super) fn begun(&self) -> Instant {
        self.time.begun
    }

    pub(super) fn time(&self) -> CallTime {
        self.time
    }

    /// True if all its callers have given up.
    pub(super) fn is_abandoned(&self) -> bool {
        self.callers.are_gone()
    }

    pub(super) fn fail(self, fault: &Fault) {
        self.callers.fail(fault);
    }

    /// Sends the call, and delivers an answer to every caller. `host` is the node's.
    pub(super) async fn run(
        self,
        mut connection: Connection,
        context: &LinkContext,
        deadlines: &Deadlines,
        host: &str,
    ) -> Fate {
        let terms =
            CallTerms { now: context.surroundings.clock.explicit(), spans: self.spans, asking: self.asking };
        let exchange = exchange(&mut connection, self.form, &self.requests, terms);
        let timeout = self.first().map_or_else(|| R::deadline(context), |first| first.patience(context));
        let deadline = monotonic() + timeout;
        let Ok(reply) = deadlines.until(deadline, exchange).await else {
            self.callers.fail(&Fault::Failed(StoreError::Timeout));
            return timed_out(timeout, is_stalled(deadline, monotonic()));
        };
        // Yield, so that answers of other nodes and requests that have arrived are read first: a connection
        // writes all that it has to send at once.
        tokio::task::yield_now().await;
        match reply {
            Ok(reply) => self.callers.answer(R::decode(&self.requests, reply), self.spans),
            Err(error) => {
                let fault = Fault::new(&error, host);
                self.callers.fail(&fault);
                Fate {
                    failure: node_failure(&error).map(Into::into),
                    closes: matches!(fault, Fault::Broken(_)),
                    is_stalled: false,
                }
            }
        }
    }
}

/// A timer that is later than this was held up by this process: it had no time, or the machine stood still.
const STALL: Duration = Duration::from_millis(10);

/// True if this process did not run when a call fell due whose timer woke it at `now`. It has not looked for the answer
/// either, so that is no failure of the node.
pub(super) fn is_stalled(due: Instant, now: Instant) -> bool {
    now.saturating_duration_since(due) >= STALL
}

fn timed_out(timeout: Duration, is_stalled: bool) -> Fate {
    let failure = (!is_stalled).then(|| format!("no answer within {timeout:?}").into());
    Fate { failure, is_stalled, ..Fate::default() }
}

#[cfg(test)]
mod tests;
