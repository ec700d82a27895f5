//! The health board: the current status, and a log line for each change.

mod capabilities;
mod shared_rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use weir_config::{RedisConfig, Topology};
use weir_core::key::KeySecret;

use self::capabilities::CapabilityBoard;
use super::evictions::{Event, Evictions, MemoryInfo};
use super::fingerprint::{Change, Fingerprint};
use super::remedy::{NO_EVICTION, ONE_FILE, ONE_SECRET, RUNS_NO_SCRIPTS, forbids_scripts, remedy};
use super::rules::RulesWatch;
use super::streak::{Streak, StreakChange};
use crate::backend::{BackendStatus, NodeStatus, Problem, Since};
use crate::redis::breaker::{BreakerStatus, Breakers};
use crate::redis::topology::Address;
use crate::scripts::Uses;

/// The health of the Redis nodes. Clones share it.
#[derive(Clone)]
pub struct StoreHealth(Arc<SharedBoard>);

struct SharedBoard {
    config: RedisConfig,
    breakers: Arc<Breakers>,
    board: Mutex<Board>,
    changes: watch::Sender<()>,
}

struct Board {
    nodes: BTreeMap<Address, NodeBoard>,
    /// Results of topology discovery. A single server is configured, and needs none.
    topology: Streak,
    fingerprint: Fingerprint,
    rules: RulesWatch,
    /// True once `INFO` was refused; it is not requested again.
    info_refused: bool,
    uses: Uses,
}

#[derive(Default)]
struct NodeBoard {
    streak: Streak,
    capabilities: Vec<CapabilityBoard>,
    evictions: Evictions,
}

impl StoreHealth {
    pub(in crate::redis) fn new(config: &RedisConfig, secret: &KeySecret, breakers: Arc<Breakers>) -> Self {
        let board = Board {
            nodes: BTreeMap::new(),
            topology: Streak::default(),
            fingerprint: Fingerprint::new(secret),
            rules: RulesWatch::default(),
            info_refused: false,
            uses: Uses::default(),
        };
        let (board, changes) = (Mutex::new(board), watch::Sender::new(()));
        Self(Arc::new(SharedBoard { config: config.clone(), breakers, board, changes }))
    }

    /// Returns a snapshot of the current status.
    pub fn status(&self) -> BackendStatus {
        self.0.board.lock().status(&self.0.config, &self.0.breakers)
    }

    /// Records that a node's breaker has opened, or has closed.
    pub(in crate::redis) fn breaker_changed(&self) {
        self.0.changes.send_replace(());
    }

    /// Subscribes to changes of [`StoreHealth::status`].
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    /// Sets the probed nodes, and drops all others.
    pub(super) fn keep(&self, nodes: &[Address]) {
        self.change(|board| {
            board.nodes.retain(|known, _| nodes.contains(known));
            for node in nodes {
                board.nodes.entry(node.clone()).or_default();
            }
        });
    }

    /// Records the result of a topology refresh. A single server is configured, so it has no discovery.
    pub(super) fn looked(&self, outcome: &Result<(), String>) {
        if self.0.config.topology == Topology::Single {
            return;
        }
        self.change(|board| match outcome {
            Ok(()) => {
                if let Some(StreakChange::Ended { lasted }) = board.topology.succeeded(Since::now()) {
                    tracing::info!(seconds = lasted.as_secs(), "Redis discovery recovered");
                }
            }
            Err(reason) => {
                if board.topology.failed(reason, Since::now()).is_some() {
                    let what_to_do = remedy(reason, &self.0.config, &board.uses);
                    match forbids_scripts(reason) {
                        true => tracing::error!(reason, %what_to_do, "{RUNS_NO_SCRIPTS}"),
                        false => tracing::warn!(reason, %what_to_do, "cannot discover the nodes of Redis; will retry"),
                    }
                }
            }
        });
    }

    pub(super) fn probed(&self, node: &Address, outcome: Result<(), &str>) {
        self.change(|board| {
            let Board { nodes, uses, .. } = board;
            let Some(known) = nodes.get_mut(node) else { return };
            match outcome {
                Ok(()) => {
                    if let Some(StreakChange::Ended { lasted }) = known.streak.succeeded(Since::now()) {
                        tracing::info!(%node, seconds = lasted.as_secs(), "Redis node recovered");
                    }
                }
                Err(reason) => {
                    if known.streak.failed(reason, Since::now()).is_some() {
                        let what_to_do = remedy(reason, &self.0.config, uses);
                        match forbids_scripts(reason) {
                            true => tracing::error!(%node, reason, %what_to_do, "{RUNS_NO_SCRIPTS}"),
                            false => tracing::warn!(
                                %node, reason, %what_to_do,
                                "a Redis node cannot decide; on_store_failure answers for its keys"
                            ),
                        }
                    }
                }
            }
        });
    }

    pub(super) fn own_fingerprint(&self) -> String {
        self.0.board.lock().fingerprint.own().to_owned()
    }

    pub(super) fn compared(&self, found: Option<&str>) {
        self.change(|board| {
            let fingerprint = &mut board.fingerprint;
            match fingerprint.found(found, Since::now()) {
                Some(Change::Differs) => tracing::warn!(
                    own = fingerprint.own(),
                    other = found.unwrap_or_default(),
                    what_to_do = ONE_SECRET,
                    "another node has another key_secret; each limit is admitted once by each of them"
                ),
                Some(Change::Agrees) => {
                    tracing::info!("key_secret matches on all nodes");
                }
                None => {}
            }
        });
    }

    pub(super) fn comparison_refused(&self, reason: &str) {
        let mut board = self.0.board.lock();
        if board.fingerprint.refused() {
            tracing::warn!(
                reason, what_to_do = %remedy(reason, &self.0.config, &board.uses),
                "cannot compare key_secret with other nodes"
            );
        }
    }

    /// True unless `INFO` was refused before.
    pub(super) fn may_ask_info(&self) -> bool {
        !self.0.board.lock().info_refused
    }

    /// Records that `INFO` was refused. It is not requested again.
    pub(super) fn info_refused(&self, node: &Address, reason: &str) {
        if !std::mem::replace(&mut self.0.board.lock().info_refused, true) {
            tracing::info!(
                %node, reason,
                "Redis user may not run INFO; evictions are not reported. `+info` allows it"
            );
        }
    }

    pub(super) fn lost(&self, node: &Address) {
        tracing::warn!(
            %node, what_to_do = "find out whether it was flushed, restarted without persistence, or evicts keys",
            "Redis node lost its data, or evicted it; its limits start full, and its queues and leases are gone"
        );
    }

    pub(super) fn informed(&self, node: &Address, info: MemoryInfo) {
        self.change(|board| {
            let Some(known) = board.nodes.get_mut(node) else { return };
            for event in known.evictions.looked(info, Since::now()) {
                let policy = known.evictions.policy().map_or("noeviction", |(_, policy)| policy);
                match event {
                    Event::Evicts => tracing::warn!(
                        %node, what_to_do = NO_EVICTION,
                        "Redis evicts keys; limits whose keys are evicted start full"
                    ),
                    Event::Stopped => tracing::info!(%node, "Redis stopped evicting keys"),
                    Event::MayEvict => tracing::warn!(
                        %node, policy, what_to_do = NO_EVICTION,
                        "maxmemory-policy of Redis allows it to evict keys of limits"
                    ),
                    Event::Keeps => {
                        tracing::info!(%node, "maxmemory-policy of Redis is safe now; it evicts no keys")
                    }
                }
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Board)) {
        let mut board = self.0.board.lock();
        change(&mut board);
        drop(board);
        self.0.changes.send_replace(());
    }
}

impl Board {
    fn status(&self, config: &RedisConfig, breakers: &Breakers) -> BackendStatus {
        let uses = &self.uses;
        let topology = self.topology.failure();
        let topology = topology
            .map(|failure| problem("cannot discover the nodes of Redis".to_owned(), failure, config, uses));
        let failed = self.nodes.iter().filter_map(|(node, known)| {
            Some(problem(format!("Redis node {node} cannot decide"), known.streak.failure()?, config, uses))
        });
        // The probes' own finding says more.
        let decide = self.nodes.iter().filter(|(_, known)| known.streak.failure().is_none());
        let refused = decide.filter_map(|(node, _)| {
            let (at, reason) = breakers.status(node).open?;
            let what = format!("Redis node {node} fails, and is not asked until probes succeed");
            Some(problem(what, (Since::from_instant(at), &reason), config, uses))
        });
        let nodes = self.nodes.iter().map(|(node, known)| known.status(node, &breakers.status(node)));
        BackendStatus {
            nodes: nodes.collect(),
            problems: topology.into_iter().chain(failed).chain(refused).collect(),
            notes: self.notes(config),
            breakers_opened: breakers.opened(),
            missing: self.missing(),
            other_key_secret: self.fingerprint.other().is_some(),
            other_rules: self.rules.other().is_some(),
        }
    }

    fn notes(&self, config: &RedisConfig) -> Vec<Problem> {
        let other = self.fingerprint.other().map(|(since, other)| Problem {
            what: "another node has another key_secret; each limit is admitted once by each of them"
                .to_owned(),
            since,
            reason: format!("its fingerprint is {other}, this node's is {}", self.fingerprint.own()),
            remedy: ONE_SECRET.to_owned(),
        });
        let rules = self.rules.other().map(|(since, other)| Problem {
            what: "another node has other limits under the same names; both count in the same keys"
                .to_owned(),
            since,
            reason: format!("on node {}: {}", other.node, other.text()),
            remedy: ONE_FILE.to_owned(),
        });
        let evictions = self.nodes.iter().flat_map(|(node, known)| known.notes(node));
        other
            .into_iter()
            .chain(rules)
            .chain(self.rules_note(config))
            .chain(self.lacking(config))
            .chain(evictions)
            .collect()
    }
}

impl NodeBoard {
    fn status(&self, node: &Address, breaker: &BreakerStatus) -> NodeStatus {
        NodeStatus {
            node: node.to_string(),
            up: self.streak.is_working(),
            breaker_open: breaker.open.is_some(),
            breaker_opened: breaker.opened,
            evicted_keys: self.evictions.total(),
            may_evict: self.evictions.policy().is_some(),
        }
    }

    fn notes(&self, node: &Address) -> impl Iterator<Item = Problem> {
        let remedy = || NO_EVICTION.to_owned();
        let rising = self.evictions.rising().map(|(since, keys)| Problem {
            what: format!(
                "Redis node {node} evicts keys, and limits whose keys are evicted start full again"
            ),
            since,
            reason: format!("{keys} were evicted"),
            remedy: remedy(),
        });
        let policy = self.evictions.policy().map(|(since, policy)| Problem {
            what: format!("Redis node {node} may evict keys of limits"),
            since,
            reason: format!("its maxmemory-policy is {policy}"),
            remedy: remedy(),
        });
        rising.into_iter().chain(policy)
    }
}

fn problem(what: String, (since, reason): (Since, &Arc<str>), config: &RedisConfig, uses: &Uses) -> Problem {
    Problem { what, since, reason: reason.to_string(), remedy: remedy(reason, config, uses).into_owned() }
}
