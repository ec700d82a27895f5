//! The faults, and their ends.

use super::{CALLS_UNTIL, SimulatedWorld};
use crate::log::WorldFault;
use crate::network::Way;

/// A fault that will happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScheduledFault {
    /// A caller calls. It is no fault; but it is due at a time, too.
    Call,
    /// Something goes wrong.
    Any,
    Heal {
        node: usize,
        server: usize,
    },
    Restart {
        node: usize,
    },
    Replicate(usize),
    FailOver {
        server: usize,
    },
    /// Slots that began to move have moved.
    EndMove,
    /// A clock that has stepped goes back.
    StepBack {
        server: usize,
        by: i64,
    },
}

impl SimulatedWorld {
    pub(super) async fn happen(&mut self, what: ScheduledFault) {
        let ends = self.timeline.now() >= CALLS_UNTIL;
        match what {
            ScheduledFault::Call if !ends => self.call(),
            ScheduledFault::Any if !ends => {
                self.any().await;
                let pause = self.random.between(20_000, 700_000);
                self.schedule(pause, ScheduledFault::Any);
            }
            ScheduledFault::Replicate(server) if !ends => {
                let lag = self.random.between(10_000, 150_000);
                self.replicate(server);
                self.schedule(lag, ScheduledFault::Replicate(server));
            }
            ScheduledFault::Call | ScheduledFault::Any | ScheduledFault::Replicate(_) => {}
            ScheduledFault::Heal { node, server } => self.setup.network.heal(node, server),
            ScheduledFault::Restart { node } => self.begin_node(node),
            ScheduledFault::FailOver { server } => self.fail_over(server),
            ScheduledFault::EndMove => self.end_move(),
            ScheduledFault::StepBack { server, by } => self.step(server, by),
        }
    }

    async fn any(&mut self) {
        let node = self.random.below(self.machines.len() as u64) as usize;
        let server = self.random.below(self.servers.len() as u64) as usize;
        match self.random.below(16) {
            0..5 => self.cut(node, server),
            5..8 => self.setup.network.lose_one(),
            8 | 9 => self.crash(node),
            10 => self.end(node).await,
            11 => {
                self.servers[server].redis.forget_scripts();
                self.log.fault(WorldFault::ScriptsForgotten(server));
            }
            12 | 13 if self.plan.has_exceptions => self.die(server),
            14 if self.plan.has_exceptions => self.step_clock(server),
            _ => self.begin_move(),
        }
    }

    fn cut(&mut self, node: usize, server: usize) {
        let ways: &[Way] = match self.random.below(3) {
            0 => &[Way::ToServer],
            1 => &[Way::ToNode],
            _ => &[Way::ToServer, Way::ToNode],
        };
        self.setup.network.cut(node, server, ways);
        let most = if self.random.one_in(4) { 2_500_000 } else { 400_000 };
        let lasts = self.random.between(10_000, most);
        self.schedule(lasts, ScheduledFault::Heal { node, server });
    }

    fn crash(&mut self, node: usize) {
        let Some(process) = self.machines[node].process.take() else { return };
        process.crash();
        self.restart_soon(node);
    }

    async fn end(&mut self, node: usize) {
        let Some(process) = self.machines[node].process.take() else { return };
        process.end().await;
        self.restart_soon(node);
    }

    fn restart_soon(&mut self, node: usize) {
        let pause = self.random.between(10_000, 1_500_000);
        self.schedule(pause, ScheduledFault::Restart { node });
    }

    fn replicate(&mut self, server: usize) {
        let SimulatedWorld { servers, log, .. } = self;
        *servers[server].replica.lock() = servers[server].redis.data();
        log.fault(WorldFault::Replicated(server));
    }

    fn die(&mut self, server: usize) {
        self.log.fault(WorldFault::ServerDies(server));
        self.setup.network.stop(server);
        let pause = self.random.between(10_000, 800_000);
        self.schedule(pause, ScheduledFault::FailOver { server });
    }

    /// A replica takes its place, which has what was replicated last.
    fn fail_over(&mut self, server: usize) {
        let failed = &self.servers[server];
        failed.redis.restore(failed.replica.lock().clone());
        failed.redis.forget_scripts();
        self.log.fault(WorldFault::ServerFailsOver(server));
        self.drop_others_keys(server);
        self.setup.network.start(server);
    }

    fn step_clock(&mut self, server: usize) {
        let far = if self.random.one_in(3) { 60_000_000 } else { 3_000_000 };
        let by = self.random.below(2 * far) as i64 - far as i64;
        self.step(server, by);
        if self.random.one_in(2) {
            let pause = self.random.between(10_000, 3_000_000);
            self.schedule(pause, ScheduledFault::StepBack { server, by: -by });
        }
    }

    fn step(&mut self, server: usize, by: i64) {
        self.servers[server].clock.step(by);
        self.log.fault(WorldFault::ClockSteps { server, by });
    }
}
