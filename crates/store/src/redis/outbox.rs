//! The queues of calls to one node: callers push, and the task of the node's link pops.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use super::decisions::DecisionRequest;
use super::fault::Fault;
use super::leases::{LeaseListRequest, LeaseRequest};
use super::queues::QueueRequest;
use super::script_call::{ScriptCall, ScriptRequest};

/// Maximum number of keys in one script call: enough for a batch of the largest size with one limit each, and few
/// enough to block Redis for some milliseconds at most. The last request may exceed it.
const MAX_KEYS: usize = 1000;

/// The queues of calls that wait for a node.
#[derive(Default)]
pub(super) struct Outbox(Mutex<WaitingCalls>);

/// One queue per kind of request, because only calls of one kind are joined.
#[derive(Default)]
pub(super) struct WaitingCalls {
    decisions: VecDeque<ScriptCall<DecisionRequest>>,
    leases: VecDeque<ScriptCall<LeaseRequest>>,
    lists: VecDeque<ScriptCall<LeaseListRequest>>,
    queues: VecDeque<ScriptCall<QueueRequest>>,
    /// The link's task, while it waits for calls.
    task: Option<Waker>,
    is_closed: bool,
}

/// Calls popped from the outbox. The buffers are reused.
#[derive(Default)]
pub(super) struct ReadyCalls {
    pub(super) decisions: Vec<ScriptCall<DecisionRequest>>,
    pub(super) leases: Vec<ScriptCall<LeaseRequest>>,
    pub(super) lists: Vec<ScriptCall<LeaseListRequest>>,
    pub(super) queues: Vec<ScriptCall<QueueRequest>>,
}

/// The link or its task has ended.
pub(super) struct LinkClosed;

/// A request that can be queued in an outbox.
pub(super) trait OutboxRequest: ScriptRequest {
    /// Returns the queue of its kind.
    fn place(waiting: &mut WaitingCalls) -> &mut VecDeque<ScriptCall<Self>>;
}

impl OutboxRequest for DecisionRequest {
    fn place(waiting: &mut WaitingCalls) -> &mut VecDeque<ScriptCall<Self>> {
        &mut waiting.decisions
    }
}

impl OutboxRequest for LeaseRequest {
    fn place(waiting: &mut WaitingCalls) -> &mut VecDeque<ScriptCall<Self>> {
        &mut waiting.leases
    }
}

impl OutboxRequest for LeaseListRequest {
    fn place(waiting: &mut WaitingCalls) -> &mut VecDeque<ScriptCall<Self>> {
        &mut waiting.lists
    }
}

impl OutboxRequest for QueueRequest {
    fn place(waiting: &mut WaitingCalls) -> &mut VecDeque<ScriptCall<Self>> {
        &mut waiting.queues
    }
}

impl Outbox {
    pub(super) fn put<R: OutboxRequest>(&self, call: ScriptCall<R>) -> Result<(), LinkClosed> {
        let mut waiting = self.0.lock();
        if waiting.is_closed {
            return Err(LinkClosed);
        }
        R::place(&mut waiting).push_back(call);
        let task = waiting.task.take();
        drop(waiting);
        task.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Resolves when a call is queued.
    pub(super) async fn ready(&self) -> Result<(), LinkClosed> {
        poll_fn(|context| {
            let mut waiting = self.0.lock();
            if waiting.is_closed {
                return Poll::Ready(Err(LinkClosed));
            }
            if waiting.has_some() {
                return Poll::Ready(Ok(()));
            }
            waiting.task = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Pops as many calls of each kind as fit into one script call. Calls whose callers are gone are dropped, because
    /// they must not be charged.
    pub(super) fn take(&self, ready: &mut ReadyCalls) {
        let mut waiting = self.0.lock();
        take(&mut waiting.decisions, &mut ready.decisions);
        take(&mut waiting.leases, &mut ready.leases);
        take(&mut waiting.lists, &mut ready.lists);
        take(&mut waiting.queues, &mut ready.queues);
    }

    /// Refuses further calls. Queued ones are dropped, which their callers notice.
    pub(super) fn close(&self) {
        let mut waiting = self.0.lock();
        let closed = WaitingCalls { is_closed: true, ..WaitingCalls::default() };
        let mut dropped = mem::replace(&mut *waiting, closed);
        drop(waiting);
        dropped.task.take().into_iter().for_each(Waker::wake);
    }
}

impl WaitingCalls {
    fn has_some(&self) -> bool {
        let Self { decisions, leases, lists, queues, .. } = self;
        !(decisions.is_empty() && leases.is_empty() && lists.is_empty() && queues.is_empty())
    }
}

impl ReadyCalls {
    /// Fails all calls without sending them.
    pub(super) fn fail(&mut self, fault: &Fault) {
        self.decisions.drain(..).for_each(|call| call.fail(fault));
        self.leases.drain(..).for_each(|call| call.fail(fault));
        self.lists.drain(..).for_each(|call| call.fail(fault));
        self.queues.drain(..).for_each(|call| call.fail(fault));
    }
}

fn take<R: ScriptRequest>(waiting: &mut VecDeque<ScriptCall<R>>, ready: &mut Vec<ScriptCall<R>>) {
    let mut keys = 0;
    while keys < MAX_KEYS
        && let Some(call) = waiting.pop_front()
    {
        keys += call.weight();
        if !call.is_abandoned() {
            ready.push(call);
        }
    }
}

#[cfg(test)]
mod tests;
