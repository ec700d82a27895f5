//! The counter of a key in a store. Twin: `lua/approximate/count.lua`.

use std::collections::BTreeMap;

use weir_units::Micros;

/// What the store has counted of a key in its current window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedCount {
    window: u64,
    count: u64,
    /// Grows with each change. Begins with the time, so that it also grows where the store's data was lost.
    version: u64,
    /// By the number of the place.
    pushed: BTreeMap<u64, PushedUnits>,
}

/// What the last holder of a place has pushed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PushedUnits {
    incarnation: u64,
    sequence: u64,
    units: u64,
}

/// All that a node has admitted by itself in a window. A repeated push is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePush {
    /// The number of the window.
    pub window: u64,
    /// The place of the node.
    pub place: u64,
    /// Its incarnation.
    pub incarnation: u64,
    /// Grows with each call of the node for this key. What was overtaken may know too little of what the node owes.
    pub sequence: u64,
    /// The units.
    pub units: u64,
}

/// What a node asks of the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountAsk {
    /// What is counted first.
    pub push: Option<NodePush>,
    /// The units to decide on; 0 asks for the count alone.
    pub cost: u64,
    /// The limit.
    pub limit: u64,
    /// What each holder of a place may owe. A call of another node is decided at so much less, and so is one that does not
    /// show all that its node owes: of a past window, of a holder of before, or overtaken by a later one.
    pub share: u64,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountAnswer {
    /// True if the units were charged.
    pub allowed: bool,
    /// The store's window.
    pub window: u64,
    /// The units that are counted, after the decision.
    pub count: u64,
    /// The version of the count.
    pub version: u64,
    /// The store's time.
    pub now: Micros,
}

impl SharedCount {
    /// Counts what was pushed, and decides, at the store's time `now`, in windows of this length.
    pub fn answer(&mut self, ask: CountAsk, now: Micros, length: Micros) -> CountAnswer {
        let window = now.0 / length.0.max(1);
        if self.window != window || self.version == 0 {
            *self = Self { window, version: now.0.max(self.version + 1), ..Self::default() };
        }
        let holds = ask.push.is_some_and(|push| push.window == window && self.push(push));
        let limit = if holds { ask.limit } else { ask.limit.saturating_sub(ask.share) };
        let allowed = self.count + ask.cost <= limit;
        if allowed && ask.cost > 0 {
            self.add(ask.cost);
        }
        let Self { count, version, .. } = *self;
        CountAnswer { allowed, window, count, version, now }
    }

    /// Counts what is new. False if a later call of this place has come before.
    fn push(&mut self, push: NodePush) -> bool {
        let NodePush { incarnation, sequence, units, .. } = push;
        let last = self.pushed.entry(push.place).or_default();
        if incarnation < last.incarnation {
            return false;
        }
        if incarnation > last.incarnation {
            *last = PushedUnits { incarnation, sequence: 0, units: 0 };
        }
        let (is_last, more) = (sequence >= last.sequence, units.saturating_sub(last.units));
        (last.sequence, last.units) = (last.sequence.max(sequence), last.units.max(units));
        if more > 0 {
            self.add(more);
        }
        is_last
    }

    fn add(&mut self, units: u64) {
        self.count += units;
        self.version += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Micros = Micros(1_000);

    #[test]
    fn pushes_count_once_and_for_their_window() {
        let mut shared = SharedCount::default();
        let push = |window, place, incarnation, units| {
            Some(NodePush { window, place, incarnation, sequence: units, units })
        };
        let mut ask = |push, cost, now| {
            let answer = shared.answer(CountAsk { push, cost, limit: 10, share: 2 }, Micros(now), LENGTH);
            (answer.allowed, answer.count)
        };
        assert_eq!(ask(push(5, 0, 7, 3), 2, 5_000), (true, 5));
        assert_eq!(ask(push(5, 0, 7, 3), 0, 5_001), (true, 5), "a repeated push");
        assert_eq!(ask(push(5, 0, 7, 2), 0, 5_001), (true, 5), "one that was overtaken");
        assert_eq!(ask(push(5, 1, 8, 4), 2, 5_002), (false, 9));
        assert_eq!(ask(push(5, 0, 9, 2), 0, 5_003), (false, 11), "the next holder of the place");
        assert_eq!(ask(push(5, 0, 7, 9), 0, 5_004), (false, 11), "the holder of before");
        assert_eq!(ask(push(5, 1, 8, 9), 1, 6_000), (true, 1), "a past window");
        assert_eq!(ask(None, 0, 6_001), (true, 1));
    }

    #[test]
    fn who_may_hold_no_place_is_decided_at_a_smaller_limit() {
        let mut shared = SharedCount::default();
        let push = |window, incarnation, sequence| {
            Some(NodePush { window, place: 0, incarnation, sequence, units: 0 })
        };
        let mut ask = |push, cost| {
            let answer = shared.answer(CountAsk { push, cost, limit: 10, share: 2 }, Micros(5_000), LENGTH);
            answer.allowed
        };
        assert!(ask(None, 8) && !ask(None, 1));
        assert!(!ask(push(4, 7, 1), 1), "its window has ended");
        assert!(ask(push(5, 8, 2), 1));
        assert!(!ask(push(5, 7, 3), 1), "its place has another holder");
        assert!(!ask(push(5, 8, 1), 1), "it was overtaken");
        assert!(ask(push(5, 8, 3), 1) && !ask(push(5, 8, 4), 1));
    }
}
