//! The pure driver as a store. The test decides when it executes and answers each call.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use weir_core::key::Subject;
use weir_store::{Answers, Decision, Store, StoreError, Verdicts};
use weir_time::clock::ManualClock;

use super::truth::{Asked, Truth};
use crate::denials::random::SUBJECTS;

/// A store of two workers.
#[derive(Clone)]
pub struct Gate {
    clock: ManualClock,
    at: Arc<Mutex<At>>,
}

/// The calls that have arrived.
#[derive(Default)]
pub struct At {
    pub truth: Truth,
    calls: Vec<Call>,
    arrived: usize,
}

/// A call that has not been answered.
struct Call {
    asked: Asked,
    sent: u64,
    executed: Option<Verdicts>,
    reply: oneshot::Sender<Result<Verdicts, StoreError>>,
}

impl Gate {
    pub fn new(clock: ManualClock) -> Self {
        Self { clock, at: Arc::default() }
    }

    /// For the next random case.
    pub fn clear(&self) {
        *self.at.lock() = At::default();
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut At) -> T) -> T {
        act(&mut self.at.lock())
    }

    /// Returns the number of calls that have ever arrived.
    pub fn arrived(&self) -> usize {
        self.at.lock().arrived
    }

    /// Returns the number of waiting calls. A call whose callers have gone is not executed any more.
    pub fn waiting(&self) -> usize {
        let mut at = self.at.lock();
        at.calls.retain(|call| !call.reply.is_closed());
        at.calls.len()
    }

    /// Executes a call, if that has not happened.
    pub fn execute(&self, index: usize) {
        let (now, mut at) = (self.clock.now(), self.at.lock());
        let At { truth, calls, .. } = &mut *at;
        let Some(call) = calls.get_mut(index) else { return };
        if call.executed.is_none() {
            call.executed = Some(truth.execute(&call.asked, now));
        }
    }

    /// Answers a call, and executes it before.
    pub fn answer(&self, index: usize) {
        self.execute(index);
        let (now, mut at) = (self.clock.now(), self.at.lock());
        let call = at.calls.remove(index);
        let verdicts = call.executed.unwrap();
        at.truth.receive(&call.asked, &verdicts, call.sent, now);
        let _ = call.reply.send(Ok(verdicts));
    }

    /// The call's answer is lost, or the call before it was executed.
    pub fn lose(&self, index: usize) {
        let call = self.at.lock().calls.remove(index);
        let _ = call.reply.send(Err(StoreError::Timeout));
    }
}

impl Store for Gate {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        decisions.iter().for_each(|decision| self.take(decision, answers));
    }
}

impl Gate {
    fn take(&self, decision: &Decision<'_>, answers: &mut Answers) {
        let Subject { resource, consumer, group, .. } = decision.subject;
        let who = |subject: &Subject<'_>| {
            (subject.resource, subject.consumer, subject.group) == (resource, consumer, group)
        };
        let whose = SUBJECTS.iter().position(who).unwrap();
        let (strategy, op, costs) = (Arc::clone(decision.strategy), decision.op, decision.costs.to_vec());
        let gate = self.clone();
        answers.later(async move {
            let (reply, answered) = oneshot::channel();
            let asked = Asked { strategy, whose, op, costs, by: Some(tokio::task::id()) };
            let call = Call { asked, sent: gate.clock.now().0, executed: None, reply };
            gate.with(|at| {
                at.calls.push(call);
                at.arrived += 1;
            });
            answered.await.unwrap_or(Err(StoreError::Timeout))
        });
    }
}
