//! The state of a key whose nodes take chunks: that of an exact limit. Twin: `lua/approximate/chunks.lua`.

use std::slice;

use weir_units::Micros;

use crate::algorithm::{Algorithm, LimitVerdict, Op, State, Verdict, VerdictSink, decide};

/// The state of a key in a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedChunk {
    state: Option<State>,
}

/// What a node asks: to take back what is left of a chunk, to decide on calls, and for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkAsk {
    /// What is taken back first.
    pub give_back: Option<GivenBack>,
    /// What is decided then.
    pub op: ChunkOp,
    /// The units to decide on; 0 changes nothing.
    pub cost: u64,
    /// How many calls of this cost there are, one after the other. 1 for [`ChunkOp::AtMost`].
    pub times: u64,
    /// The units that the node takes in addition, if all of its calls pass and these fit too. 0 for none.
    pub chunk: u64,
    /// How old a chunk of a bucket may be when it is given back.
    pub lasts: Micros,
}

/// What is decided on a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkOp {
    /// It is charged if it fits.
    Charge,
    /// As much of it as fits is charged.
    AtMost,
}

/// What a node has left of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenBack {
    /// The units.
    pub units: u64,
    /// The window that the chunk is of, by its start; of a bucket when it was taken. By the store's clock.
    pub taken: Micros,
}

/// The answer: the state that was decided on. Who asked computes the rest from it, see [`ChunkAnswer::verdicts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkAnswer {
    /// The store's time.
    pub now: Micros,
    /// True if something was taken back.
    pub took_back: bool,
    /// How many of the calls passed: the first ones.
    pub passed: u64,
    /// True if the node has its chunk.
    pub has_chunk: bool,
    /// The state after what was taken back, and before the calls.
    pub before: Option<State>,
}

/// The verdict on one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkVerdict {
    /// Of the limit.
    pub limit: LimitVerdict,
    /// Of the strategy, which has no other limit.
    pub all: Verdict,
}

impl ChunkAsk {
    /// What gives back alone.
    #[must_use]
    pub const fn of_rest(rest: GivenBack, lasts: Micros) -> Self {
        Self { give_back: Some(rest), op: ChunkOp::Charge, cost: 0, times: 0, chunk: 0, lasts }
    }

    /// The state that a chunk is charged to, as what is left of it is named.
    #[must_use]
    pub const fn name_of(state: Option<&State>, now: Micros) -> Micros {
        match state {
            Some(State::Window(window)) => Micros(window.start),
            _ => now,
        }
    }
}

impl ChunkOp {
    pub(super) const fn op(self) -> Op {
        match self {
            Self::Charge => Op::Charge,
            Self::AtMost => Op::AtMost,
        }
    }
}

impl SharedChunk {
    /// Decides at the store's time `now`.
    pub fn answer(&mut self, limit: &Algorithm, ask: &ChunkAsk, now: Micros) -> ChunkAnswer {
        let found = self.state.clone();
        if let Some(rest) = ask.give_back
            && self.is_of_now(limit, rest, ask.lasts, now)
        {
            decided(&mut self.state, limit, (Op::Refund, rest.units), now);
        }
        let (took_back, before) = (self.state != found, self.state.clone());
        let (passed, has_chunk) = charge(&mut self.state, limit, ask, now, |_| ());
        ChunkAnswer { now, took_back, passed, has_chunk, before }
    }

    /// True if what is left may be taken back: the window goes on that it was taken of, or it is not too old.
    fn is_of_now(&self, limit: &Algorithm, rest: GivenBack, lasts: Micros, now: Micros) -> bool {
        match (&self.state, limit.engine()) {
            (Some(State::Window(state)), _) => {
                // A window further ahead of the clock than it is long is read as moved.
                rest.taken.0 == state.start && state.start <= now.0.saturating_add(state.span)
            }
            _ => rest.taken <= now && now.0 - rest.taken.0 <= lasts.0,
        }
    }
}

impl ChunkAnswer {
    /// Tells the verdict on each call, and returns the state after all of them. `None` if the answer contradicts itself.
    pub fn verdicts(
        &self,
        limit: &Algorithm,
        ask: &ChunkAsk,
        each: impl FnMut(ChunkVerdict),
    ) -> Option<Option<State>> {
        let mut state = self.before.clone();
        let found = charge(&mut state, limit, ask, self.now, each);
        (found == (self.passed, self.has_chunk)).then_some(state)
    }
}

/// Decides on the calls, and on the chunk. Returns how many passed, and whether the chunk did.
fn charge(
    state: &mut Option<State>,
    limit: &Algorithm,
    ask: &ChunkAsk,
    now: Micros,
    mut each: impl FnMut(ChunkVerdict),
) -> (u64, bool) {
    let (mut passed, mut units) = (0, 0);
    for _ in 0..ask.times {
        let verdict = decided(state, limit, (ask.op.op(), ask.cost), now);
        passed += u64::from(verdict.all.allowed);
        units += verdict.all.granted;
        each(verdict);
    }
    // A denied call takes no chunk, and neither does one that was granted less than it asked for.
    let all_passed = passed == ask.times && units == ask.times * ask.cost;
    let takes = ask.chunk > 0 && all_passed;
    (passed, takes && decided(state, limit, (Op::Charge, ask.chunk), now).all.allowed)
}

/// What an exact limit decides.
pub(super) fn decided(
    state: &mut Option<State>,
    limit: &Algorithm,
    (op, cost): (Op, u64),
    now: Micros,
) -> ChunkVerdict {
    let mut only = OnlyVerdict::default();
    let Ok(()) = decide(slice::from_ref(limit), state, op, cost, now, &mut only);
    only.0
}

/// The verdict of one limit.
struct OnlyVerdict(ChunkVerdict);

impl Default for OnlyVerdict {
    fn default() -> Self {
        let limit = LimitVerdict {
            cause: None,
            remaining: 0,
            retry: weir_units::Retry::Now,
            reset_after: Micros::ZERO,
            level_before: 0,
        };
        let all = Verdict {
            now: Micros::ZERO,
            allowed: false,
            fitted: false,
            granted: 0,
            wait: Micros::ZERO,
            applied: false,
        };
        Self(ChunkVerdict { limit, all })
    }
}

impl VerdictSink for OnlyVerdict {
    fn limit(&mut self, verdict: LimitVerdict) {
        self.0.limit = verdict;
    }

    fn all(&mut self, verdict: Verdict) {
        self.0.all = verdict;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Rate;

    const LASTS: Micros = Micros(2_000_000);
    const ASK: ChunkAsk =
        ChunkAsk { give_back: None, op: ChunkOp::Charge, cost: 1, times: 1, chunk: 10, lasts: LASTS };

    fn window() -> Algorithm {
        Algorithm::fixed_window(25, Micros::from_secs(10), false, false).unwrap()
    }

    fn left(state: &SharedChunk, limit: &Algorithm, now: Micros) -> u64 {
        decided(&mut state.state.clone(), limit, (Op::Peek, 0), now).limit.remaining
    }

    #[test]
    fn a_call_and_a_chunk_pass_or_not_each_for_itself() {
        let (limit, now) = (window(), Micros::from_secs(101));
        let mut shared = SharedChunk::default();
        let mut ask = |ask: ChunkAsk| {
            let answer = shared.answer(&limit, &ask, now);
            let mut calls = 0;
            let after = answer.verdicts(&limit, &ask, |_| calls += 1);
            assert_eq!((after.as_ref(), calls), (Some(&shared.state), ask.times));
            (answer.passed, answer.has_chunk, left(&shared, &limit, now))
        };
        assert_eq!(ask(ASK), (1, true, 14));
        assert_eq!(ask(ChunkAsk { times: 3, ..ASK }), (3, true, 1));
        assert_eq!(ask(ChunkAsk { cost: 2, chunk: 1, ..ASK }), (0, false, 1), "a denied call takes no chunk");
        let most = ChunkAsk { op: ChunkOp::AtMost, cost: 2, chunk: 1, ..ASK };
        assert_eq!(ask(most), (1, false, 0));
        assert_eq!(ask(ChunkAsk { cost: 0, chunk: 0, ..ASK }), (1, false, 0));
        assert_eq!(ask(ASK), (0, false, 0));
    }

    #[test]
    fn what_is_left_of_a_window_is_taken_back_in_that_window() {
        let (limit, at) = (window(), Micros::from_secs);
        let mut shared = SharedChunk::default();
        assert!(shared.answer(&limit, &ASK, at(101)).has_chunk);
        let taken = ChunkAsk::name_of(shared.state.as_ref(), at(101));
        assert_eq!(taken, at(100));
        let rest = |units| ChunkAsk::of_rest(GivenBack { units, taken }, LASTS);
        assert!(shared.answer(&limit, &rest(4), at(109)).took_back, "a window names itself, however late");
        assert_eq!(left(&shared, &limit, at(109)), 18);
        assert!(!shared.answer(&limit, &rest(4), at(110)).took_back);
        assert!(shared.answer(&limit, &ASK, at(110)).has_chunk);
        assert!(!shared.answer(&limit, &rest(4), at(111)).took_back, "another window");
        assert_eq!(left(&shared, &limit, at(111)), 14);
    }

    #[test]
    fn what_is_left_of_a_bucket_is_taken_back_for_a_time() {
        let limit = Algorithm::bucket(25, Rate { count: 1, period: Micros::from_secs(100) }).unwrap();
        let at = Micros::from_secs;
        let mut shared = SharedChunk::default();
        assert!(shared.answer(&limit, &ASK, at(100)).has_chunk);
        let taken = ChunkAsk::name_of(shared.state.as_ref(), at(100));
        let rest = ChunkAsk::of_rest(GivenBack { units: 4, taken }, LASTS);
        assert!(!shared.answer(&limit, &rest, at(103)).took_back, "too late");
        assert!(
            !shared.answer(&limit, &rest, at(99)).took_back,
            "before it was taken: the clock has stepped"
        );
        assert!(shared.answer(&limit, &rest, at(102)).took_back);
        assert_eq!(left(&shared, &limit, at(102)), 18);
        let both = ChunkAsk { give_back: rest.give_back, ..ASK };
        assert!(shared.answer(&limit, &both, at(102)).has_chunk);
        assert_eq!(left(&shared, &limit, at(102)), 11, "taken back first");
    }
}
