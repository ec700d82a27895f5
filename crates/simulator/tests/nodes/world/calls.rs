//! Callers and holders of leases.

use std::sync::Arc;
use std::time::Duration;

use weir::leases::model::{LeaseOp, LeaseOutcome, WorkOutcome};
use weir_units::Micros;

use super::SimulatedWorld;
use super::faults::ScheduledFault;
use crate::log::{CounterName, SimulationEvent, SimulationLog};
use crate::node::NodeWorker;
use crate::random::SeededRandom;
use crate::setup::{COUNTED, EXACT, LOCAL, PERMITS, strategy};

impl SimulatedWorld {
    /// Some callers call, and more will.
    pub(super) fn call(&mut self) {
        // Now and then many at once, which wait for one another.
        let count = if self.random.one_in(20) { self.random.between(4, 12) } else { 1 };
        let consumer = self.consumer();
        for _ in 0..count {
            let node = self.random.below(self.machines.len() as u64) as usize;
            let consumer = if count > 1 { consumer.clone() } else { self.consumer() };
            self.call_node(node, consumer);
        }
        let pause = self.random.between(0, 16_000);
        self.schedule(pause, ScheduledFault::Call);
    }

    fn consumer(&mut self) -> String {
        format!("c{}", self.random.below(3))
    }

    fn call_node(&mut self, node: usize, consumer: String) {
        let Self { machines, random, calls, .. } = self;
        let Some(process) = &mut machines[node].process else { return };
        *calls += 1;
        let worker = random.below(process.workers.len() as u64) as usize;
        let caller = Caller {
            call: *calls,
            node,
            worker: Arc::clone(&process.workers[worker]),
            random: random.fork(),
            is_patient: !self.plan.has_faults,
            log: self.log.clone(),
        };
        match random.below(11) {
            10 => process.spawn(async move { caller.call_model(&consumer).await }),
            0 => {
                let Some(rule) = strategy(&self.setup.rules, PERMITS).cloned() else { return };
                process.spawn(async move { caller.hold(&rule, &consumer).await });
            }
            kind => {
                let name = match kind {
                    1 | 2 => LOCAL,
                    3 | 4 => COUNTED,
                    _ => EXACT[random.below(EXACT.len() as u64) as usize].0,
                };
                let counter = CounterName { strategy: name.to_owned(), consumer };
                process.spawn(caller.decide(counter));
            }
        }
    }
}

/// One caller, on a worker of a node.
pub(super) struct Caller {
    pub(super) call: u64,
    node: usize,
    pub(super) worker: Arc<NodeWorker>,
    pub(super) random: SeededRandom,
    /// True if it waits for any answer.
    is_patient: bool,
    pub(super) log: SimulationLog,
}

impl Caller {
    async fn decide(mut self, counter: CounterName) {
        let Self { call, node, .. } = self;
        let cost = if self.random.one_in(4) { self.random.between(2, 3) } else { 1 };
        let hurries = !self.is_patient && self.random.one_in(3);
        let patience = hurries.then(|| Duration::from_millis(self.random.between(1, 120)));
        self.log.add(SimulationEvent::Called { call, node, counter: counter.clone(), cost });
        let outcome = self.worker.decide(&counter, cost, patience).await;
        self.log.add(SimulationEvent::Ended { call, node, counter, cost, outcome });
    }

    /// Takes permits, works, and gives them back. Some forget to.
    async fn hold(mut self, rule: &Arc<weir_core::strategy::Strategy>, consumer: &str) {
        let id = format!("lease-{}", self.call);
        let weight = self.random.between(1, 2);
        let ttl = Micros(self.random.between(100_000, 1_500_000));
        let mut answer = self.ask(rule, consumer, &id, LeaseOp::Acquire { weight, ttl }).await;
        while let Some(LeaseOutcome::Held { .. }) = answer {
            let work = Duration::from_micros(self.random.between(0, ttl.0));
            tokio::time::sleep(work).await;
            match self.random.below(5) {
                0 => return,
                1 | 2 => answer = self.ask(rule, consumer, &id, LeaseOp::Renew { ttl }).await,
                _ => {
                    let op = LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None };
                    self.ask(rule, consumer, &id, op).await;
                    return;
                }
            }
        }
    }

    async fn ask(
        &self,
        rule: &Arc<weir_core::strategy::Strategy>,
        consumer: &str,
        id: &str,
        op: LeaseOp,
    ) -> Option<LeaseOutcome> {
        let (node, key) = (self.node, consumer.to_owned());
        let logged =
            |answer| SimulationEvent::Leased { node, key: key.clone(), id: id.to_owned(), op, answer };
        if let LeaseOp::Release { .. } = op {
            // From now on the holder does not count on it.
            self.log.add(logged(None));
        }
        let answer = self.worker.lease(rule, consumer, id, op).await;
        self.log.add(logged(Some(answer.clone())));
        answer.ok().map(|answer| answer.outcome)
    }
}
