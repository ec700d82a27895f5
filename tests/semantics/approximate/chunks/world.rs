//! A trace: nodes, a store, and a network between them, on virtual time.

use std::collections::BTreeMap;

use weir_core::algorithm::{Algorithm, Engine, Rate};
use weir_core::approximate::{ApproximateBound, ChunkLimit, ChunkTerms, Places, SharedChunk};
use weir_units::Micros;

use super::super::random::TraceRandom;
use super::node::{ChunkNode, ChunkParcel, ChunkReply};

/// The store's time at the start.
const START: u64 = 1_700_000_000 * 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Window,
    Bucket,
}

/// The rule that a trace is without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutRule {
    None,
    /// What is left is given back once.
    Once,
    /// What is left of a window is ignored in another one.
    OneWindow,
    /// What is left of a bucket is ignored after twice the age of a chunk.
    Age,
    /// No chunk is taken while what was given back is not answered.
    Unanswered,
    /// The chunk of a window ends one clock error before it.
    ClockError,
}

pub struct ChunkWorld {
    bound: ApproximateBound,
    limit: Algorithm,
    terms: ChunkTerms,
    without: WithoutRule,
    random: TraceRandom,
    now: u64,
    places: Places,
    shared: SharedChunk,
    nodes: BTreeMap<u64, ChunkNode>,
    next_node: u64,
    /// Nodes that the places do not hear of until then.
    cut: BTreeMap<u64, u64>,
    /// By the time of arrival, and a number.
    flying: BTreeMap<(u64, u64), InFlight>,
    sent: u64,
    /// Of windows: what each admitted.
    admitted: BTreeMap<u64, u64>,
    /// Of a bucket: what was admitted and has not drained, in ticks, and as of when.
    level: u64,
    as_of: u64,
    over: u64,
    /// Steps in which every node spends all it can.
    rush: u64,
    /// The store's clock, ahead of the true time or behind it.
    step: i64,
    with_exceptions: bool,
    exceptions: u64,
    pub local: u64,
    pub central: u64,
    pub returned: u64,
}

/// What is on its way.
struct InFlight {
    node: u64,
    /// By the node's clock.
    sent: Micros,
    what: ChunkLetter,
}

enum ChunkLetter {
    Call(ChunkParcel),
    Reply(ChunkReply),
}

impl ChunkWorld {
    /// The trace of a seed, without a rule.
    pub fn run(seed: u64, kind: Kind, without: WithoutRule) -> Self {
        Self::play(seed, kind, without, false)
    }

    /// The trace of a seed in which the store now and then loses its data, or its clock steps.
    pub fn with_exceptions(seed: u64, kind: Kind) -> Self {
        Self::play(seed, kind, WithoutRule::None, true)
    }

    fn play(seed: u64, kind: Kind, without: WithoutRule, with_exceptions: bool) -> Self {
        let mut random = TraceRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
        let (nodes, chunk) = (2 + random.below(2), 1 + random.below(3));
        let size = nodes * chunk + random.below(3);
        let max_age = Micros([200_000, 2_000_000, 10_000_000][random.below(3) as usize]);
        let (of, limit) = match kind {
            Kind::Window => {
                let length = Micros(max_age.0.max(500_000) * 2);
                (ChunkLimit::Window(length), Algorithm::fixed_window(size, length, false, false).unwrap())
            }
            Kind::Bucket => {
                // What nodes have taken has often drained before they spend it.
                let rate = Rate { count: size, period: Micros(max_age.0 / (1 + random.below(4))) };
                (ChunkLimit::Bucket, Algorithm::bucket(size, rate).unwrap())
            }
        };
        let terms = ChunkTerms { chunk, max_age, of };
        let bound = ApproximateBound::of_chunks(terms, nodes).unwrap();
        bound.check(size).unwrap();
        let now = START + random.below(bound.window().0);
        let mut world = Self {
            bound,
            limit,
            terms,
            without,
            now,
            places: Places::new(bound),
            shared: SharedChunk::default(),
            nodes: BTreeMap::new(),
            next_node: 0,
            cut: BTreeMap::new(),
            flying: BTreeMap::new(),
            sent: 0,
            admitted: BTreeMap::new(),
            level: 0,
            as_of: now,
            over: 0,
            rush: 0,
            step: 0,
            with_exceptions,
            exceptions: 0,
            local: 0,
            central: 0,
            returned: 0,
            random,
        };
        // Now and then one more than there are places.
        let present = nodes + world.random.below(2);
        (0..present).for_each(|_| world.add_node());
        for _ in 0..600 {
            world.step();
        }
        world
    }

    /// The most units beyond an exact limit: of a window above its limit, of a bucket above burst + rate · t in any t.
    pub fn over(&self) -> u64 {
        let limit = self.limit.limit();
        let windows = self.admitted.values().map(|units| units.saturating_sub(limit)).max();
        self.over.max(windows.unwrap_or(0))
    }

    /// What was beyond the bound, and the bound.
    pub fn excess(&self) -> Option<(u64, u64)> {
        let bound = self.bound.max_over();
        Some(self.over()).filter(|over| *over > bound).map(|over| (over, bound))
    }

    pub fn is_beyond_exact(&self) -> bool {
        self.over() > 0
    }

    /// The bound with what each exception adds: one limit, and one chunk for each place.
    pub fn most_with_exceptions(&self) -> u64 {
        let each = self.limit.limit() + self.terms.chunk * self.bound.nodes();
        self.bound.max_over() + self.exceptions * each
    }

    fn add_node(&mut self) {
        let node = ChunkNode::new(self.bound, self.limit, self.without, &mut self.random);
        self.nodes.insert(self.next_node, node);
        self.next_node += 1;
    }

    fn step(&mut self) {
        // Mostly few calls, so that nodes have chunks; now and then all that the nodes can spend.
        self.rush = if self.rush == 0 && self.random.one_in(12) { 6 } else { self.rush.saturating_sub(1) };
        let parts = if self.rush > 0 { 40 } else { 8 };
        let until = self.now + self.random.below(self.terms.max_age.0 / parts);
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
            let calls = self.nodes.get_mut(name).map(|node| node.due(until)).unwrap_or_default();
            calls.into_iter().for_each(|call| self.send(*name, call));
        }
        self.nodes.retain(|_, node| !node.has_ended);
        let name = names[self.random.below(names.len() as u64) as usize];
        match self.random.below(300) {
            0 => drop(self.nodes.remove(&name)),
            1 => self.nodes.get_mut(&name).into_iter().for_each(|node| node.is_ending = true),
            _ if self.rush > 0 => names.iter().for_each(|name| (0..6).for_each(|_| self.call(*name))),
            2 => {
                // For a time the places do not hear of it, but its key does: they may be on different servers.
                let until = self.now + self.bound.window().0 * 3 / 2;
                self.cut.insert(name, until);
            }
            3..200 => self.call(name),
            _ => {}
        }
        while self.nodes.len() < names.len() {
            self.add_node();
        }
    }

    /// The store loses its data, or its clock steps.
    fn except(&mut self) {
        self.exceptions += 1;
        if self.random.one_in(2) {
            (self.shared, self.places) = (SharedChunk::default(), Places::new(self.bound));
        } else {
            let window = self.bound.window().0;
            self.step += self.random.below(4 * window) as i64 - 2 * window as i64;
        }
    }

    fn time(&self) -> Micros {
        Micros(self.now.saturating_add_signed(self.step))
    }

    fn call(&mut self, name: u64) {
        let cost = 1 + u64::from(self.random.one_in(5));
        let Some(node) = self.nodes.get_mut(&name) else { return };
        let (admits, call) = node.decide(cost, self.now);
        if admits {
            self.local += 1;
            self.admit(cost);
        }
        if let Some(call) = call {
            self.central += 1;
            self.send(name, ChunkParcel::Chunk(call));
        }
    }

    fn admit(&mut self, units: u64) {
        match self.limit.engine() {
            Engine::Window(window) => {
                *self.admitted.entry(self.time().0 / window.span).or_default() += units;
            }
            Engine::Bucket(bucket) => {
                let drained = (self.now - self.as_of).saturating_mul(bucket.drain);
                self.level = self.level.saturating_sub(drained) + units * self.limit.weight();
                self.as_of = self.now;
                let above = self.level.saturating_sub(self.limit.capacity());
                self.over = self.over.max(above.div_ceil(self.limit.weight()));
            }
            other => panic!("{other:?}"),
        }
    }

    fn send(&mut self, name: u64, call: ChunkParcel) {
        let Some(node) = self.nodes.get(&name) else { return };
        let sent = node.clock(self.now);
        if matches!(call, ChunkParcel::Place(_)) && self.cut.get(&name).is_some_and(|until| self.now < *until)
        {
            return;
        }
        let gives_back = matches!(call, ChunkParcel::Chunk(call) if call.ask.give_back.is_some());
        self.fly(name, sent, ChunkLetter::Call(call), gives_back);
        // What alone is given back is sent again.
        if let ChunkParcel::Chunk(given) = call
            && self.without == WithoutRule::Once
            && given.ask.times == 0
        {
            self.fly(name, sent, ChunkLetter::Call(call), gives_back);
        }
    }

    fn fly(&mut self, node: u64, sent: Micros, what: ChunkLetter, is_slow: bool) {
        if self.random.one_in(15) {
            return;
        }
        let age = self.terms.max_age.0;
        let most = if self.random.one_in(if is_slow { 3 } else { 40 }) { 3 * age } else { age / 50 };
        let arrives = self.now + 1 + self.random.below(most);
        self.sent += 1;
        self.flying.insert((arrives, self.sent), InFlight { node, sent, what });
    }

    fn arrive(&mut self, flying: InFlight) {
        let InFlight { node, sent, what } = flying;
        let now = self.time();
        match what {
            ChunkLetter::Call(ChunkParcel::Place(ask)) => {
                let reply = ChunkReply::Place(ask, self.places.answer(ask, now));
                self.fly(node, sent, ChunkLetter::Reply(reply), false);
            }
            ChunkLetter::Call(ChunkParcel::Chunk(call)) => {
                let mut asked = call.ask;
                if let Some(rest) = &mut asked.give_back {
                    match self.without {
                        WithoutRule::OneWindow => rest.taken = Micros(now.0 - now.0 % self.bound.window().0),
                        WithoutRule::Age => asked.lasts = Micros(u64::MAX),
                        _ => {}
                    }
                }
                let answer = self.shared.answer(&self.limit, &asked, now);
                self.returned += u64::from(answer.took_back);
                if answer.passed > 0 {
                    self.admit(call.ask.cost);
                }
                self.fly(node, sent, ChunkLetter::Reply(ChunkReply::Chunk(call, answer)), false);
            }
            ChunkLetter::Reply(reply) => {
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.learn(reply, sent, self.now);
                }
            }
        }
    }
}
