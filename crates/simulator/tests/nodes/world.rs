//! A run: nodes, callers and servers from one seed, and what goes wrong between them.

mod budgets;
mod calls;
mod faults;
mod slots;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use self::faults::ScheduledFault;
use self::slots::ClusterSlots;
use crate::checks::name_of;
use crate::log::{LoggedEvent, ScriptEvent, SimulationEvent, SimulationLog};
use crate::network::{FIRST_PORT, HOST, SimulatedNetwork};
use crate::node::{NodeProcess, NodeSetup};
use crate::plan::{PlantedFault, SimulationPlan};
use crate::random::SeededRandom;
use crate::setup::SimulatedConfig;
use crate::timeline::{MachineClock, Timeline};
use weir_simulator::redis::{SimulatedData, SimulatedRedis};

/// End of all calls, in µs.
const CALLS_UNTIL: u64 = 12_000_000;

/// Time for the last answers, in µs.
const SETTLED_AFTER: u64 = 2_000_000;

/// Everything there is.
pub(crate) struct SimulatedWorld {
    plan: SimulationPlan,
    timeline: Timeline,
    random: SeededRandom,
    log: SimulationLog,
    servers: Vec<SimulatedServer>,
    slots: ClusterSlots,
    setup: NodeSetup,
    machines: Vec<NodeMachine>,
    /// The coming faults, by time and number.
    due: BTreeMap<(u64, u64), ScheduledFault>,
    scheduled: u64,
    calls: u64,
}

/// A server of Redis.
struct SimulatedServer {
    redis: SimulatedRedis,
    clock: MachineClock,
    replica: Arc<Mutex<SimulatedData>>,
}

/// A machine of a node. Its clock goes on while the process is away.
struct NodeMachine {
    clock: MachineClock,
    process: Option<NodeProcess>,
}

impl SimulatedWorld {
    /// Runs to the end on the current runtime. Returns what happened.
    pub(crate) async fn run(plan: SimulationPlan) -> Vec<LoggedEvent> {
        let mut world = Self::begin(plan);
        world.play().await;
        world.log.take()
    }

    fn begin(plan: SimulationPlan) -> Self {
        let timeline = Timeline::begin();
        let (mut random, log) = (SeededRandom::new(plan.seed), SimulationLog::new(timeline));
        let servers: Vec<_> =
            (0..plan.servers).map(|number| SimulatedServer::begin(number, timeline, &plan, &log)).collect();
        let redis = servers.iter().map(|server| server.redis.clone()).collect();
        let network = SimulatedNetwork::new(timeline, log.clone(), redis, (&plan, random.fork()));
        let SimulatedConfig { redis, rules } = SimulatedConfig::on(plan.servers);
        let setup = NodeSetup { redis, rules, network, log: log.clone() };
        let slots = ClusterSlots::new(plan.servers);
        let mut world = Self {
            timeline,
            log,
            servers,
            slots,
            setup,
            machines: Vec::new(),
            due: BTreeMap::new(),
            scheduled: 0,
            calls: 0,
            random,
            plan,
        };
        world.show_slots();
        for _ in 0..world.plan.nodes {
            let skewed = world.plan.has_faults;
            let ahead = if skewed { world.random.below(600_000) as i64 - 300_000 } else { 0 };
            let ppm = if skewed { world.random.below(400) as i64 - 200 } else { 0 };
            world
                .machines
                .push(NodeMachine { clock: MachineClock::new(timeline, ppm, ahead), process: None });
        }
        (0..world.machines.len()).for_each(|node| world.begin_node(node));
        world
    }

    async fn play(&mut self) {
        if self.plan.has_faults {
            self.schedule(1_000_000, ScheduledFault::Any);
            (0..self.servers.len())
                .for_each(|server| self.schedule(50_000, ScheduledFault::Replicate(server)));
        }
        self.schedule(300_000, ScheduledFault::Call);
        while let Some(((at, _), due)) = self.due.pop_first() {
            self.timeline.until(at).await;
            self.happen(due).await;
        }
        self.timeline.until(self.timeline.now() + SETTLED_AFTER).await;
    }

    /// Lets something happen after a while.
    fn schedule(&mut self, after: u64, what: ScheduledFault) {
        self.scheduled += 1;
        self.due.insert((self.timeline.now() + after, self.scheduled), what);
    }

    fn begin_node(&mut self, node: usize) {
        let (workers, seed) = (self.random.between(1, 2) as usize, self.random.number());
        let machine = &mut self.machines[node];
        machine.process = Some(NodeProcess::begin(&self.setup, node, &machine.clock, workers, seed));
    }
}

impl SimulatedServer {
    fn begin(number: usize, timeline: Timeline, plan: &SimulationPlan, log: &SimulationLog) -> Self {
        let clock = MachineClock::new(timeline, 0, 0);
        let time = clock.clone();
        let redis = SimulatedRedis::new(
            format!("{HOST}:{}", FIRST_PORT + number as u16),
            Arc::new(move || time.now()),
        );
        if let Some(PlantedFault::Script { from, to }) = &plan.planted {
            redis.change_scripts(from, to);
        }
        let log = log.clone();
        redis.on_script(Arc::new(move |run| {
            log.add(SimulationEvent::Script(ScriptEvent {
                server: number,
                now: run.at,
                name: name_of(run.text),
                keys: run.keys.to_vec(),
                arguments: run.args.to_vec(),
                reply: run.reply.to_vec(),
            }));
        }));
        let replica = Arc::new(Mutex::new(redis.data()));
        Self { redis, clock, replica }
    }
}
