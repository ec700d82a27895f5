//! The queues of calls to one node: callers push, and the task of the node's link pops.
//!
//! Of decisions only so many are in flight, by number and by cost. While what waits fits beside them it leaves at once, in
//! the order in which it came, or gathers first (`gather.rs`). What does not fit waits in a queue of its caller and its strategy (`fair.rs`). What would
//! not be answered in time is not queued (`pace.rs`).

mod flight;
mod gather;
mod pace;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use weir_time::clock::monotonic;

use self::flight::FlightLoad;
pub(super) use self::flight::Flying;
use self::gather::Gather;
use self::pace::{LandedCall, NodePace};
use super::counts::CountRequest;
use super::decisions::DecisionRequest;
use super::fair::{FairQueues, TurnQueue as _};
use super::fault::Fault;
use super::lanes::FeatureRequest;
use super::script_call::{ScriptCall, ScriptRequest};
use crate::StoreError;
use crate::cost::{CALL_COST, ScriptCost};

/// Decisions out of time that are dropped at once, before other work gets its turn.
const DROPPED_AT_ONCE: usize = 256;

pub(super) struct Outbox(Mutex<WaitingCalls>);

/// Decisions by caller, and within a caller by the owner of their keys.
type HeldUpCalls = FairQueues<u32, FairQueues<usize, VecDeque<ScriptCall<DecisionRequest>>>>;

/// One queue per kind of request, because only calls of one kind are joined.
pub(super) struct WaitingCalls {
    /// Decisions that came since the last call left.
    decisions: VecDeque<ScriptCall<DecisionRequest>>,
    cost: ScriptCost,
    /// Earlier decisions, which did not fit.
    held_up: HeldUpCalls,
    in_flight: FlightLoad,
    gather: Gather,
    pace: NodePace,
    /// True while calls are refused: then none waits for what is in flight.
    refuses: bool,
    /// With so many decisions, those whose callers are gone are dropped: their number has no other bound.
    crowded: usize,
    features: VecDeque<ScriptCall<FeatureRequest>>,
    counts: VecDeque<ScriptCall<CountRequest>>,
    /// The link's task, while it waits for calls.
    task: Option<Waker>,
    is_closed: bool,
}

/// Calls popped from the outbox. The buffers are reused.
#[derive(Default)]
pub(super) struct ReadyCalls {
    pub(super) decisions: Vec<ScriptCall<DecisionRequest>>,
    pub(super) features: Vec<ScriptCall<FeatureRequest>>,
    pub(super) counts: Vec<ScriptCall<CountRequest>>,
}

/// The link or its task has ended.
pub(super) struct LinkClosed;

pub(super) trait OutboxRequest: ScriptRequest {
    /// Adds a call to the queue of its kind.
    fn queue(waiting: &mut WaitingCalls, call: ScriptCall<Self>);

    /// Takes the call that makes room for this request, if one of another owner has to.
    fn displace(&self, _waiting: &mut WaitingCalls) -> Option<ScriptCall<Self>> {
        None
    }

    /// Counts a call as it leaves, if calls of its kind count.
    fn fly(_outbox: &Arc<Outbox>, _call: &ScriptCall<Self>, _now: Instant) -> Option<Flying> {
        None
    }
}

impl OutboxRequest for DecisionRequest {
    fn queue(waiting: &mut WaitingCalls, call: ScriptCall<Self>) {
        waiting.cost += call.cost();
        waiting.gather.record(call.time(), waiting.decisions.len() + 1);
        waiting.decisions.push_back(call);
        if waiting.decisions.len() + waiting.held_up.len() > waiting.crowded {
            waiting.drop_abandoned();
        }
    }

    fn displace(&self, waiting: &mut WaitingCalls) -> Option<ScriptCall<Self>> {
        waiting.sort_by_owner();
        waiting.held_up.displace(self.place_in_turns())
    }

    fn fly(outbox: &Arc<Outbox>, call: &ScriptCall<Self>, now: Instant) -> Option<Flying> {
        Some(Flying::new(outbox, call, now))
    }
}

impl OutboxRequest for FeatureRequest {
    fn queue(waiting: &mut WaitingCalls, call: ScriptCall<Self>) {
        waiting.features.push_back(call);
    }
}

impl OutboxRequest for CountRequest {
    fn queue(waiting: &mut WaitingCalls, call: ScriptCall<Self>) {
        waiting.counts.push_back(call);
    }
}

impl Outbox {
    /// Creates the queues of a node whose decisions have this time, and may wait for others for `gather`.
    pub(super) fn new(deadline: Duration, gather: Duration) -> Self {
        Self(Mutex::new(WaitingCalls::new(deadline, gather)))
    }

    /// True if a decision of `caller` that came now would be answered within `left`, as far as is known. What is in flight
    /// does not count: a caller with little in the queue is always asked for.
    pub(super) fn is_in_time(&self, caller: u32, left: Duration) -> bool {
        let mut waiting = self.0.lock();
        if !waiting.pace.is_known() {
            return true;
        }
        waiting.sort_by_owner();
        let ahead = waiting.held_up.ahead_of(caller);
        waiting.pace.is_in_time(ahead, left)
    }

    /// The cost that a script call is filled up to.
    pub(super) fn call_cost(&self) -> ScriptCost {
        self.0.lock().pace.call_cost()
    }

    pub(super) fn put<R: OutboxRequest>(&self, call: ScriptCall<R>) -> Result<(), LinkClosed> {
        let mut waiting = self.0.lock();
        if waiting.is_closed {
            return Err(LinkClosed);
        }
        R::queue(&mut waiting, call);
        wake(waiting);
        Ok(())
    }

    /// Takes a waiting call to make room for `request`: the newest of the longest queue, unless `request` would be that.
    pub(super) fn displace<R: OutboxRequest>(&self, request: &R) -> Option<ScriptCall<R>> {
        request.displace(&mut self.0.lock())
    }

    /// Resolves when a call is queued and may leave.
    pub(super) async fn ready(&self) -> Result<(), LinkClosed> {
        poll_fn(|context| {
            let mut waiting = self.0.lock();
            if waiting.is_closed {
                return Poll::Ready(Err(LinkClosed));
            }
            if waiting.has_some_to_send() {
                return Poll::Ready(Ok(()));
            }
            waiting.task = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Decides whether the decisions that are ready wait for others, and returns until when. Until then `ready` resolves
    /// only for a call that cannot wait.
    pub(super) fn gather(&self, now: Instant) -> Option<Instant> {
        self.0.lock().gather_decisions(now)
    }

    /// Pops as many calls of each kind as fit into one script call, and no more decisions than may be in flight. Calls
    /// whose callers are gone are dropped, because they must not be charged.
    pub(super) fn take(&self, ready: &mut ReadyCalls, now: Instant) {
        let mut waiting = self.0.lock();
        waiting.take_decisions(&mut ready.decisions, now);
        take(&mut waiting.features, &mut ready.features);
        take(&mut waiting.counts, &mut ready.counts);
    }

    /// Says whether calls are refused, or sent.
    pub(super) fn set_refusing(&self, refuses: bool) {
        let mut waiting = self.0.lock();
        waiting.refuses = refuses;
        waiting.gather.end();
    }

    /// Pops all calls, to answer them without sending them.
    pub(super) fn take_all(&self, ready: &mut ReadyCalls) {
        let mut waiting = self.0.lock();
        waiting.sort_by_owner();
        while let Some(call) = waiting.held_up.pop(&mut usize::MAX.clone(), &mut Some) {
            ready.decisions.push(call);
        }
        ready.features.extend(waiting.features.drain(..));
        ready.counts.extend(waiting.counts.drain(..));
    }

    /// A script call has been answered, or will not be.
    fn land(&self, call: LandedCall) {
        let now = monotonic();
        let mut waiting = self.0.lock();
        waiting.in_flight.remove(FlightLoad { decisions: call.decisions, cost: call.cost });
        waiting.pace.landed(call, now);
        wake(waiting);
    }

    /// Refuses further calls. Queued ones are dropped, which their callers notice.
    pub(super) fn close(&self) {
        let mut waiting = self.0.lock();
        let closed = WaitingCalls { is_closed: true, ..WaitingCalls::new(Duration::ZERO, Duration::ZERO) };
        let mut dropped = mem::replace(&mut *waiting, closed);
        drop(waiting);
        dropped.task.take().into_iter().for_each(Waker::wake);
    }
}

impl WaitingCalls {
    fn new(deadline: Duration, gather: Duration) -> Self {
        Self {
            decisions: VecDeque::new(),
            cost: 0,
            held_up: HeldUpCalls::default(),
            in_flight: FlightLoad::default(),
            gather: Gather::new(gather),
            pace: NodePace::new(deadline, gather),
            refuses: false,
            crowded: 0,
            features: VecDeque::new(),
            counts: VecDeque::new(),
            task: None,
            is_closed: false,
        }
    }

    /// The cost that may be in flight: of two calls, so that the node finds the next one when it has ended one.
    fn flight_cost(&self) -> ScriptCost {
        2 * self.pace.call_cost()
    }

    fn has_some_to_send(&self) -> bool {
        let Self { features, counts, .. } = self;
        let has_none = self.decisions.is_empty() && self.held_up.is_empty();
        let waits = !(self.gather.is_waiting() || has_none);
        (waits && (self.refuses || self.in_flight.has_room(self.flight_cost())))
            || !(features.is_empty() && counts.is_empty())
    }

    /// Only the decisions that find nothing in flight wait. With calls of another kind they leave at once.
    fn gather_decisions(&mut self, now: Instant) -> Option<Instant> {
        let is_idle = self.in_flight.decisions == 0 && self.held_up.is_empty();
        if !(is_idle && self.features.is_empty() && self.counts.is_empty()) {
            return None;
        }
        self.gather.begin(self.decisions.iter().map(ScriptCall::time), now)
    }

    fn take_decisions(&mut self, ready: &mut Vec<ScriptCall<DecisionRequest>>, now: Instant) {
        self.gather.end();
        let arrived = FlightLoad { decisions: self.decisions.len(), cost: self.cost };
        let most = self.flight_cost();
        if self.held_up.is_empty() && self.in_flight.fits(arrived, most) {
            // Nobody waits for anybody, so the order of turns does not matter.
            self.in_flight.add(arrived);
            self.cost = 0;
            for call in self.decisions.drain(..) {
                if call.is_abandoned() {
                    self.in_flight.remove(FlightLoad::of(&call));
                } else {
                    ready.push(call);
                }
            }
            return;
        }
        self.sort_by_owner();
        let mut drops = DROPPED_AT_ONCE;
        let mut keep = |call: ScriptCall<_>| {
            if call.is_late(now) {
                call.fail(&Fault::Failed(StoreError::Timeout));
                return None;
            }
            Some(call).filter(|call| !call.is_abandoned())
        };
        while self.in_flight.has_room(most)
            && let Some(call) = self.held_up.pop(&mut drops, &mut keep)
        {
            self.in_flight.add(FlightLoad::of(&call));
            ready.push(call);
        }
    }

    fn drop_abandoned(&mut self) {
        self.sort_by_owner();
        self.held_up.retain(&mut |call| !call.is_abandoned());
        self.crowded = 2 * self.held_up.len().max(flight::MAX_IN_FLIGHT);
    }

    /// Puts the calls that have come into the queues of their callers and owners.
    fn sort_by_owner(&mut self) {
        self.cost = 0;
        for call in self.decisions.drain(..).filter(|call| !call.is_abandoned()) {
            let place = call.first().map(DecisionRequest::place_in_turns).unwrap_or_default();
            self.held_up.push(place, call);
        }
    }
}

impl ReadyCalls {
    /// Fails all calls without sending them.
    pub(super) fn fail(&mut self, fault: &Fault) {
        self.decisions.drain(..).for_each(|call| call.fail(fault));
        self.features.drain(..).for_each(|call| call.fail(fault));
        self.counts.drain(..).for_each(|call| call.fail(fault));
    }
}

/// Wakes the link's task if it has something to do. Without the lock, because the task needs it.
fn wake(mut waiting: MutexGuard<'_, WaitingCalls>) {
    let task = if waiting.has_some_to_send() { waiting.task.take() } else { None };
    drop(waiting);
    task.into_iter().for_each(Waker::wake);
}

fn take<R: ScriptRequest>(waiting: &mut VecDeque<ScriptCall<R>>, ready: &mut Vec<ScriptCall<R>>) {
    let mut cost = 0;
    while cost < CALL_COST
        && let Some(call) = waiting.pop_front()
    {
        cost += call.cost();
        if !call.is_abandoned() {
            ready.push(call);
        }
    }
}

#[cfg(test)]
mod tests;
