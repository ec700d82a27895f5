//! A trace: nodes, a store, and a network between them, on virtual time.

use std::collections::BTreeMap;

use weir_core::approximate::{ApproximateBound, CountOp, Places, SharedCount};
use weir_units::Micros;

use super::node::{StoreCall, StoreReply, TraceNode};
use super::random::TraceRandom;

/// The length of a window.
const WINDOW: u64 = 1_000_000;

/// The store's time at the start.
const START: u64 = 1_700_000_000 * 1_000_000;

/// The rule that a trace is without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchedOff {
    Nothing,
    /// R1: places are blocked for two windows.
    Blocking,
    /// R2: a node that got its place within a window begins at the store.
    CentralBegin,
    /// R3: keys stay in the table.
    KeptKeys,
    /// R4: what the store admitted is not pushed.
    CountedOnce,
    /// R5: a charge that was overtaken is decided at the smaller limit.
    Overtaking,
}

pub struct ApproximateWorld {
    bound: ApproximateBound,
    limit: u64,
    off: SwitchedOff,
    random: TraceRandom,
    now: u64,
    places: Places,
    shared: SharedCount,
    nodes: BTreeMap<u64, TraceNode>,
    next_node: u64,
    /// By the time of arrival, and a number.
    flying: BTreeMap<(u64, u64), Flying>,
    sent: u64,
    /// By window.
    admitted: BTreeMap<u64, u64>,
    counted: BTreeMap<u64, u64>,
    /// The store's clock, ahead of the true time or behind it.
    step: i64,
    with_exceptions: bool,
    pub exceptions: u64,
    pub local: u64,
    pub central: u64,
}

/// A message in flight.
struct Flying {
    node: u64,
    /// By the node's clock.
    sent: Micros,
    what: Parcel,
}

enum Parcel {
    Call(StoreCall),
    Reply(StoreReply),
}

impl ApproximateWorld {
    /// The trace of a seed, without a rule.
    pub fn run(seed: u64, off: SwitchedOff) -> Self {
        Self::play(seed, off, false)
    }

    /// The trace of a seed in which the store now and then loses its data, or its clock steps.
    pub fn with_exceptions(seed: u64) -> Self {
        Self::play(seed, SwitchedOff::Nothing, true)
    }

    fn play(seed: u64, off: SwitchedOff, with_exceptions: bool) -> Self {
        let mut random = TraceRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
        let places = 2 + random.below(2);
        let max_over = (places - 1) * (1 + random.below(3));
        let bound = ApproximateBound::new(max_over, places, Micros(WINDOW)).unwrap();
        let limit = bound.share() + 1 + random.below(8);
        let blocked = if off == SwitchedOff::Blocking { 1 } else { 2 };
        let mut world = Self {
            bound,
            limit,
            off,
            now: START + random.below(WINDOW),
            places: Places::blocked_for(bound, blocked),
            shared: SharedCount::default(),
            nodes: BTreeMap::new(),
            next_node: 0,
            flying: BTreeMap::new(),
            sent: 0,
            admitted: BTreeMap::new(),
            counted: BTreeMap::new(),
            step: 0,
            with_exceptions,
            exceptions: 0,
            local: 0,
            central: 0,
            random,
        };
        // Now and then one more than there are places.
        let nodes = places + world.random.below(2);
        (0..nodes).for_each(|_| world.add_node());
        for _ in 0..500 {
            world.step();
        }
        world
    }

    /// The most units above the limit in a window.
    pub fn over(&self) -> u64 {
        self.admitted.values().map(|units| units.saturating_sub(self.limit)).max().unwrap_or(0)
    }

    /// A window that admitted more than the bound, and the bound.
    pub fn excess(&self) -> Option<(u64, u64)> {
        let bound = self.bound.max_over();
        Some(self.over()).filter(|over| *over > bound).map(|over| (over, bound))
    }

    /// The bound with what each exception adds: one limit, one bound, and one share for each place.
    pub fn bound_with_exceptions(&self) -> u64 {
        let each = self.limit + self.bound.max_over() + self.bound.share() * self.bound.nodes();
        self.bound.max_over() + self.exceptions * each
    }

    /// A window of which more was counted than admitted.
    pub fn counted_too_much(&self) -> Option<u64> {
        let admitted = |window| self.admitted.get(window).copied().unwrap_or(0);
        self.counted.iter().find(|(window, counted)| **counted > admitted(window)).map(|(window, _)| *window)
    }

    fn add_node(&mut self) {
        let node = TraceNode::new(self.bound, self.off, &mut self.random);
        self.nodes.insert(self.next_node, node);
        self.next_node += 1;
    }

    fn step(&mut self) {
        let until = self.now + self.random.below(WINDOW / 40);
        while let Some(arrival) = self.flying.first_entry().filter(|first| first.key().0 <= until) {
            let ((at, _), flying) = arrival.remove_entry();
            self.now = self.now.max(at);
            self.arrive(flying);
        }
        self.now = until;
        if self.with_exceptions && self.random.one_in(250) {
            self.except();
        }
        let names: Vec<u64> = self.nodes.keys().copied().collect();
        for name in &names {
            let calls = self.nodes.get_mut(name).map(|node| node.due(self.limit, until)).unwrap_or_default();
            calls.into_iter().for_each(|call| self.send(*name, call));
        }
        self.nodes.retain(|_, node| !node.has_ended);
        let name = names[self.random.below(names.len() as u64) as usize];
        self.happen(name);
        while self.nodes.len() < names.len() {
            self.add_node();
        }
    }

    /// The store loses its data, or its clock steps.
    fn except(&mut self) {
        self.exceptions += 1;
        if self.random.one_in(2) {
            (self.shared, self.places) = (SharedCount::default(), Places::new(self.bound));
        } else {
            self.step += self.random.below(4 * WINDOW) as i64 - 2 * WINDOW as i64;
        }
    }

    fn time(&self) -> Micros {
        Micros(self.now.saturating_add_signed(self.step))
    }

    /// Something happens to a node: mostly, calls.
    fn happen(&mut self, name: u64) {
        let Some(mut node) = self.nodes.remove(&name) else { return };
        match self.random.below(120) {
            0 => return,
            1 => node.is_ending = true,
            2..6 if self.off == SwitchedOff::KeptKeys => node.evict(),
            _ => {
                for _ in 0..1 + self.random.below(3) {
                    let cost = 1 + u64::from(self.random.one_in(5));
                    let (admits, call) = node.decide(cost, self.limit, self.now);
                    if admits {
                        self.local += 1;
                        let window = self.time().0 / WINDOW;
                        *self.admitted.entry(window).or_default() += cost;
                    }
                    if let Some(call) = call {
                        self.central += 1;
                        self.send_of(name, &node, call);
                    }
                }
            }
        }
        self.nodes.insert(name, node);
    }

    fn send(&mut self, name: u64, call: StoreCall) {
        if let Some(node) = self.nodes.remove(&name) {
            self.send_of(name, &node, call);
            self.nodes.insert(name, node);
        }
    }

    fn send_of(&mut self, name: u64, node: &TraceNode, call: StoreCall) {
        let sent = node.clock(self.now);
        self.fly(name, sent, Parcel::Call(call));
        // Pushes alone may be repeated: a charge is sent once.
        if let StoreCall::Count(ask) = call
            && ask.op == CountOp::Peek
            && self.random.one_in(8)
        {
            self.fly(name, sent, Parcel::Call(call));
        }
    }

    fn fly(&mut self, node: u64, sent: Micros, what: Parcel) {
        if self.random.one_in(7) {
            return;
        }
        let most = if self.random.one_in(25) { 2 * WINDOW } else { WINDOW / 50 };
        let arrives = self.now + 1 + self.random.below(most);
        self.sent += 1;
        self.flying.insert((arrives, self.sent), Flying { node, sent, what });
    }

    fn arrive(&mut self, flying: Flying) {
        let Flying { node, sent, what } = flying;
        let now = self.time();
        match what {
            Parcel::Call(StoreCall::Place(ask)) => {
                let reply = StoreReply::Place(ask, self.places.answer(ask, now));
                self.fly(node, sent, Parcel::Reply(reply));
            }
            Parcel::Call(StoreCall::Count(ask)) => {
                let mut asked = ask;
                if let Some(push) = asked.push.as_mut().filter(|_| self.off == SwitchedOff::Overtaking) {
                    push.sequence = u64::MAX;
                }
                let answer = self.shared.answer(asked, now, Micros(WINDOW));
                if ask.op == CountOp::Charge && answer.passed > 0 {
                    *self.admitted.entry(answer.window).or_default() += ask.cost;
                }
                self.counted.insert(answer.window, answer.count);
                self.fly(node, sent, Parcel::Reply(StoreReply::Count(ask, answer)));
            }
            Parcel::Reply(reply) => {
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.learn(reply, sent, self.now);
                }
            }
        }
    }
}
