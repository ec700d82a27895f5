//! The network between nodes and servers: byte streams that are late, cut and lost.
//!
//! The bytes of one connection keep their order, those of several do not. While a path is cut, what is on its way waits,
//! as TCP sends it again. A connection that is lost takes with it what is on its way: a call, or only its reply.

mod carrier;
mod dialer;
mod pipe;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) use self::dialer::NodeDialer;
use self::pipe::Pipe;
use crate::log::{SimulationLog, WorldFault};
use crate::plan::{PlantedFault, SimulationPlan};
use crate::random::SeededRandom;
use crate::timeline::Timeline;
use weir_simulator::redis::SimulatedRedis;

/// The port of the first server; the others follow.
pub(crate) const FIRST_PORT: u16 = 7000;

/// The host of all servers.
pub(crate) const HOST: &str = "redis.test";

/// One of the two ways of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    ToServer,
    ToNode,
}

/// The network. Clones share it.
#[derive(Clone)]
pub(crate) struct SimulatedNetwork(Arc<NetworkState>);

struct NetworkState {
    timeline: Timeline,
    log: SimulationLog,
    servers: Vec<SimulatedRedis>,
    /// True if some bytes are long on their way.
    is_slow: bool,
    /// A planted fault.
    repeats_calls: bool,
    paths: Mutex<NetworkPaths>,
    /// Tells of paths that were healed.
    healed: Notify,
}

struct NetworkPaths {
    /// Servers that do not run.
    down: BTreeSet<usize>,
    cut: BTreeSet<(usize, usize, Way)>,
    open: Vec<OpenPath>,
    random: SeededRandom,
}

/// An open connection.
struct OpenPath {
    node: usize,
    server: usize,
    pipe: Weak<Pipe>,
}

impl SimulatedNetwork {
    pub(crate) fn new(
        timeline: Timeline,
        log: SimulationLog,
        servers: Vec<SimulatedRedis>,
        (plan, random): (&SimulationPlan, SeededRandom),
    ) -> Self {
        let (down, cut, is_slow) = (BTreeSet::new(), BTreeSet::new(), plan.has_faults);
        let repeats_calls = plan.planted == Some(PlantedFault::RepeatedCalls);
        let paths = Mutex::new(NetworkPaths { down, cut, open: Vec::new(), random });
        Self(Arc::new(NetworkState {
            timeline,
            log,
            servers,
            is_slow,
            repeats_calls,
            paths,
            healed: Notify::new(),
        }))
    }

    /// Cuts the path between a node and a server, one way or both.
    pub(crate) fn cut(&self, node: usize, server: usize, ways: &[Way]) {
        let mut paths = self.0.paths.lock();
        paths.cut.extend(ways.iter().map(|way| (node, server, *way)));
        let way = match ways {
            [Way::ToServer] => "to the server",
            [Way::ToNode] => "to the node",
            _ => "both ways",
        };
        self.0.log.fault(WorldFault::PathCut { node, server, way });
    }

    /// Heals it.
    pub(crate) fn heal(&self, node: usize, server: usize) {
        self.0.paths.lock().cut.retain(|(of, to, _)| (*of, *to) != (node, server));
        self.0.log.fault(WorldFault::PathHealed { node, server });
        self.0.healed.notify_waiters();
    }

    /// Loses one of the open connections.
    pub(crate) fn lose_one(&self) {
        let mut paths = self.0.paths.lock();
        paths.forget_closed();
        if paths.open.is_empty() {
            return;
        }
        let (count, both_ways) = (paths.open.len() as u64, paths.random.one_in(2));
        let which = paths.random.below(count) as usize;
        let OpenPath { node, server, pipe } = paths.open.swap_remove(which);
        drop(paths);
        self.0.log.fault(WorldFault::ConnectionLost { node, server, both_ways });
        if let Some(pipe) = pipe.upgrade() {
            pipe.lose(both_ways);
        }
    }

    /// The process of a node is gone: its connections are, too. What it has sent may arrive.
    pub(crate) fn lose_node(&self, node: usize) {
        self.lose_all(|path| path.node == node, false);
    }

    /// The process of a server is gone.
    pub(crate) fn stop(&self, server: usize) {
        self.0.paths.lock().down.insert(server);
        self.lose_all(|path| path.server == server, true);
    }

    /// Starts a server that was stopped.
    pub(crate) fn start(&self, server: usize) {
        self.0.paths.lock().down.remove(&server);
    }

    fn lose_all(&self, is_lost: impl Fn(&OpenPath) -> bool, both_ways: bool) {
        let mut paths = self.0.paths.lock();
        let lost: Vec<_> = paths.open.extract_if(.., |path| is_lost(path)).collect();
        drop(paths);
        for pipe in lost.iter().filter_map(|path| path.pipe.upgrade()) {
            pipe.lose(both_ways);
        }
    }

    /// A time on the way: mostly short.
    fn delay(&self) -> u64 {
        let random = &mut self.0.paths.lock().random;
        match random.below(40) {
            0 if self.0.is_slow => random.between(5_000, 90_000),
            1..8 => random.between(1_000, 8_000),
            _ => random.between(0, 1_000),
        }
    }

    /// True if a call is sent once more.
    fn repeats(&self) -> bool {
        self.0.repeats_calls && self.0.paths.lock().random.one_in(20)
    }

    /// Waits until the way is open.
    async fn open_way(&self, node: usize, server: usize, way: Way) {
        // One thread: nothing heals between the look and the wait.
        while self.0.paths.lock().cut.contains(&(node, server, way)) {
            self.0.healed.notified().await;
        }
    }
}

impl NetworkPaths {
    fn forget_closed(&mut self) {
        self.open.retain(|path| path.pipe.strong_count() > 0);
    }
}
