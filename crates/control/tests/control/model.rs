//! Nodes and a store that fail in the middle of changes, on random traces: nodes end with and without their cache file,
//! failovers lose the last changes, all data is lost, an older snapshot comes back, clocks step, and calls and replies are lost.
//!
//! In the end all nodes and the store have the same records: of each key the newest that was left anywhere. A trace
//! without a loss reports none, and sends nothing.

use std::collections::BTreeMap;

use weir_control::model::{
    ControlChanges, ControlMirror, ControlPosition, ControlPut, ControlRecord, ControlRefusal, ControlState,
};
use weir_units::Micros;

use super::world::{HOUR, START};

const NODES: usize = 3;
const KEYS: u64 = 6;
const STEPS: u64 = 120;

/// The traces that `make test` runs.
#[test]
fn nodes_agree_after_losses() {
    let totals = (0..1_000).map(trace).fold(Totals::default(), Totals::add);
    totals.cover();
}

/// Runs traces from `first` on, and shows what was in them.
pub fn many(traces: std::ops::Range<u64>) {
    let totals = traces.map(trace).fold(Totals::default(), Totals::add);
    println!("{totals:?}");
    totals.cover();
}

/// Rules by which nodes and stores agree. The tests switch each of them off, and must notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgreementRule {
    /// A node sends the store what it lacks.
    SendBack,
    /// Also deletions.
    SendDeletions,
    /// A put gets a greater version than its node knows.
    AboveKnown,
    /// A node that starts from its cache file reads everything first.
    RestartUnsettled,
    /// A position from what was read while others wrote.
    UnsettledRead,
}

/// Without any of the rules some trace fails: the assertions see what the rule is for.
#[test]
fn each_rule_is_needed() {
    use AgreementRule::{AboveKnown, RestartUnsettled, SendBack, SendDeletions, UnsettledRead};
    for rule in [SendBack, SendDeletions, AboveKnown, RestartUnsettled, UnsettledRead] {
        let fails = |number: &u64| std::panic::catch_unwind(|| trace_without(*number, Some(rule))).is_err();
        let found = (0..5_000).find(fails);
        assert!(found.is_some(), "no trace fails without {rule:?}");
        println!("without {rule:?}: trace {found:?} fails");
    }
}

/// Counts of the events in traces, so that a trace in which nothing happens is noticed.
#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    puts: u64,
    deletions: u64,
    losses: u64,
    reports: u64,
    sent: u64,
    /// Acknowledged changes of which no copy was left.
    gone: u64,
    without_loss: u64,
}

impl Totals {
    fn add(self, other: Self) -> Self {
        Self {
            puts: self.puts + other.puts,
            deletions: self.deletions + other.deletions,
            losses: self.losses + other.losses,
            reports: self.reports + other.reports,
            sent: self.sent + other.sent,
            gone: self.gone + other.gone,
            without_loss: self.without_loss + other.without_loss,
        }
    }

    fn cover(self) {
        let each =
            [self.puts, self.deletions, self.losses, self.reports, self.sent, self.gone, self.without_loss];
        assert!(each.iter().all(|total| *total > 0), "{self:?}");
    }
}

/// SplitMix64: the same trace for the same number.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

#[derive(Default)]
struct Node {
    mirror: ControlMirror,
    /// Content of the cache file.
    cache: (Vec<ControlRecord>, ControlPosition),
    /// As a link counts it.
    known: u64,
}

impl Node {
    fn restart(&mut self, with_cache: bool) {
        if !with_cache {
            self.cache = Default::default();
        }
        self.mirror = ControlMirror::restore(self.cache.0.iter().cloned(), self.cache.1);
        self.known = self.mirror.greatest_version();
    }

    fn save(&mut self) {
        self.cache = (self.mirror.records().cloned().collect(), self.mirror.last_position());
    }

    fn know(&mut self, records: &[ControlRecord], position: ControlPosition) {
        let versions = records.iter().map(|record| record.version).chain([position.version]);
        self.known = self.known.max(versions.max().unwrap_or_default());
    }
}

struct Trace {
    number: u64,
    random: Random,
    store: ControlState,
    /// The store after each of its changes: what an earlier snapshot, or a replica that is behind, has.
    snapshots: Vec<ControlState>,
    nodes: Vec<Node>,
    now: u64,
    /// The newest acknowledged change of each key.
    acknowledged: BTreeMap<Box<str>, ControlPosition>,
    may_lose: bool,
    /// The rule that does not hold.
    off: Option<AgreementRule>,
    totals: Totals,
}

fn trace(number: u64) -> Totals {
    trace_without(number, None)
}

fn trace_without(number: u64, off: Option<AgreementRule>) -> Totals {
    let mut random = Random(number);
    let may_lose = !random.one_in(10);
    let mut trace = Trace {
        number,
        random,
        store: ControlState::default(),
        snapshots: vec![ControlState::default()],
        nodes: (0..NODES).map(|_| Node::default()).collect(),
        now: START,
        acknowledged: BTreeMap::new(),
        may_lose,
        off,
        totals: Totals::default(),
    };
    for _ in 0..STEPS {
        trace.step();
    }
    trace.end();
    trace.totals
}

impl Trace {
    fn step(&mut self) {
        // All of a trace is within the time for which deletions are kept.
        self.now += 1 + self.random.below(HOUR / 20);
        let node = self.random.below(NODES as u64) as usize;
        match self.random.below(20) {
            0..7 => self.put(node),
            7..14 => self.sync(node, true),
            14 => self.nodes[node].save(),
            15 => {
                let with_cache = !self.random.one_in(3);
                self.nodes[node].restart(with_cache);
                if self.is_off(AgreementRule::RestartUnsettled) {
                    // As if the store had shown just this.
                    let (records, position) = self.nodes[node].cache.clone();
                    self.nodes[node].mirror = ControlMirror::default();
                    self.nodes[node].mirror.everything(self.now, records, position);
                }
            }
            16 => self.now -= self.random.below(HOUR / 2),
            17 if self.may_lose => self.lose(),
            _ => {}
        }
        if self.snapshots.last().is_some_and(|last| last.position() != self.store.position()) {
            self.snapshots.push(self.store.clone());
        }
    }

    fn is_off(&self, rule: AgreementRule) -> bool {
        self.off == Some(rule)
    }

    fn put(&mut self, node: usize) {
        let key: Box<str> = format!("key {}", self.random.below(KEYS)).into();
        let deletes = self.random.one_in(3);
        let seen = self.nodes[node].mirror.get(&key).filter(|seen| seen.is_live(self.now));
        let seen = seen.map(ControlRecord::position).unwrap_or_default();
        let put = ControlPut {
            expect: self.random.one_in(2).then_some(seen),
            change: self.random.next(),
            expires_after: self.random.one_in(6).then(|| Micros(self.random.below(HOUR))),
            body: (!deletes).then(|| self.random.next().to_be_bytes().into()),
            tombstone: self.random.next().to_be_bytes().into(),
            generation: self.random.one_in(6).then(|| "generation/s".into()),
            key,
        };
        // The call is lost; or its reply is, and perhaps the node asks again.
        let fate = self.random.below(10);
        if fate == 0 {
            return;
        }
        let known = if self.is_off(AgreementRule::AboveKnown) { 0 } else { self.nodes[node].known };
        let mut answer = self.store.put_above(self.now, known, put.clone());
        if fate == 1 {
            return;
        }
        if fate == 2 {
            answer = self.store.put_above(self.now, known, put.clone());
        }
        match answer {
            Ok(written) => {
                self.totals.puts += 1;
                self.totals.deletions += u64::from(deletes);
                self.acknowledge(node, &written);
            }
            Err(ControlRefusal::Missing) => assert!(deletes, "{}", self.number),
            Err(ControlRefusal::Stale { current }) => {
                assert_ne!(Some(current), put.expect, "{}", self.number)
            }
            Err(refusal) => panic!("{}: {refusal}", self.number),
        }
    }

    fn acknowledge(&mut self, node: usize, written: &[ControlRecord]) {
        let number = self.number;
        let Node { mirror, .. } = &mut self.nodes[node];
        for record in written {
            let before = mirror.get(&record.key).map(ControlRecord::position);
            assert!(before <= Some(record.position()), "{number}: the node has seen a newer one");
            let acknowledged = self.acknowledged.entry(record.key.clone()).or_default();
            *acknowledged = record.position().max(*acknowledged);
        }
        mirror.take_acknowledged(written);
        self.nodes[node].know(written, ControlPosition::NONE);
    }

    /// The steps of `ControlLink::sync`, which a failure may stop before and after each call.
    fn sync(&mut self, node: usize, may_fail: bool) {
        self.nodes[node].known = self.nodes[node].known.max(self.nodes[node].mirror.greatest_version());
        for _ in 0..4 {
            let changes = self.store.changes_since(self.nodes[node].mirror.position());
            if may_fail && self.random.one_in(8) {
                return;
            }
            match changes {
                ControlChanges::Since { records, position } => {
                    let is_last = records.is_empty();
                    self.nodes[node].know(&records, position);
                    self.nodes[node].mirror.apply(records, position);
                    if is_last && self.nodes[node].mirror.position() == position {
                        return;
                    }
                }
                ControlChanges::Everything { .. } => {
                    let before = self.store.clone();
                    // Others write, or the store fails, between the pages.
                    if may_fail && self.random.one_in(4) {
                        self.put((node + 1) % NODES);
                    }
                    if may_fail && self.may_lose && self.random.one_in(10) {
                        self.lose();
                    }
                    self.read_everything(node, &before, may_fail);
                }
            }
        }
    }

    /// The first page is of the store as it was before.
    fn read_everything(&mut self, node: usize, before: &ControlState, may_fail: bool) {
        let is_same = before.position() == self.store.position();
        let tells = is_same || self.is_off(AgreementRule::UnsettledRead);
        // Without the rule it would be the position that came with the last page.
        let position = if tells { self.store.position() } else { ControlPosition::UNSETTLED };
        let page = |record: &&ControlRecord| *record.key < *"key 3";
        let first = before.records().filter(page);
        let records: Vec<ControlRecord> =
            first.chain(self.store.records().filter(|record| !page(record))).cloned().collect();
        self.nodes[node].know(&records, position);
        let mut reconciled = self.nodes[node].mirror.everything(self.now, records, position);
        match self.off {
            Some(AgreementRule::SendBack) => reconciled.to_send.clear(),
            Some(AgreementRule::SendDeletions) => reconciled.to_send.retain(|record| !record.deleted),
            _ => {}
        }
        self.totals.reports += u64::from(reconciled.lost.is_some());
        self.totals.sent += reconciled.to_send.len() as u64;
        if self.totals.losses == 0 {
            assert_eq!((reconciled.lost, &reconciled.to_send[..]), (None, &[][..]), "{}", self.number);
        }
        let to_send = match (may_fail, self.random.below(6)) {
            (true, 0) => return,
            // A part of them arrives.
            (true, 1) => &reconciled.to_send[..reconciled.to_send.len() / 2],
            _ => &reconciled.to_send[..],
        };
        self.store.merge(self.now, self.random.next(), to_send);
    }

    fn lose(&mut self) {
        self.totals.losses += 1;
        let changes = self.snapshots.len() as u64;
        let lost = match self.random.below(4) {
            0 => changes - 1,
            1 => self.random.below(changes),
            _ => self.random.below(changes.min(5)),
        };
        self.store = self.snapshots[(changes - 1 - lost) as usize].clone();
        if self.random.one_in(4) {
            self.store = ControlState::default();
        }
        // Another server has another clock.
        self.now = self.now + self.random.below(HOUR / 10) - HOUR / 20;
    }

    /// All goes well for a while.
    fn end(&mut self) {
        let newest = self.newest();
        for _ in 0..2 {
            for node in 0..NODES {
                self.sync(node, false);
            }
        }
        let records = |records: Vec<&ControlRecord>| -> BTreeMap<Box<str>, ControlPosition> {
            records.into_iter().map(|record| (record.key.clone(), record.position())).collect()
        };
        assert_eq!(records(self.store.records().collect()), newest, "{}: the store", self.number);
        for node in &self.nodes {
            assert!(node.mirror.records().eq(self.store.records()), "{}", self.number);
            assert_eq!(node.mirror.position(), self.store.position(), "{}", self.number);
        }
        for (key, acknowledged) in &self.acknowledged {
            self.totals.gone += u64::from(newest.get(key) < Some(acknowledged));
        }
        assert!(self.totals.sent == 0 || self.totals.reports > 0, "{}: a loss was not reported", self.number);
        if self.totals.losses == 0 {
            self.totals.without_loss = 1;
            assert_eq!((self.totals.reports, self.totals.gone), (0, 0), "{}", self.number);
        }
    }

    /// Of each key the newest record that is left anywhere.
    fn newest(&self) -> BTreeMap<Box<str>, ControlPosition> {
        let mut newest = BTreeMap::new();
        for record in self.store.records().chain(self.nodes.iter().flat_map(|node| node.mirror.records())) {
            let position = newest.entry(record.key.clone()).or_default();
            *position = record.position().max(*position);
        }
        newest
    }
}
