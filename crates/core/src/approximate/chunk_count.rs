//! The chunk of a key on a node. Times without a remark are of the node's own clock.

use weir_units::{Micros, Retry};

use super::shared_chunk::decided;
use super::store_clock::DRIFT_PPM;
use super::{ChunkAnswer, ChunkAsk, ChunkLimit, ChunkOp, ChunkTerms, ChunkVerdict, GivenBack};
use crate::algorithm::{Algorithm, Op, State};

/// What a node knows of a key, and what it has left of its chunk.
#[derive(Debug, Clone, Default)]
pub struct ChunkCount {
    chunk: Option<HeldChunk>,
    /// What was given back, and is not answered.
    unanswered: Option<UnansweredRest>,
    /// The state that the store showed last.
    shown: Option<ShownState>,
    /// The number of the last call.
    asked: u64,
}

/// A chunk.
#[derive(Debug, Clone, Copy)]
struct HeldChunk {
    /// The numbers that it was taken under. Under others it is not spent: they may have allowed less.
    limit: Algorithm,
    left: u64,
    /// As [`GivenBack::taken`].
    taken: Micros,
    /// Until when it may be spent.
    until: Micros,
}

#[derive(Debug, Clone, Copy)]
struct UnansweredRest {
    /// The number of its call.
    asked: u64,
    /// When the store ignores it.
    until: Micros,
}

#[derive(Debug, Clone)]
struct ShownState {
    state: Option<State>,
    /// The store's time.
    now: Micros,
    /// When the node heard of it.
    heard: Micros,
}

/// A moment on the node, and what it knows of the store's time.
#[derive(Debug, Clone, Copy)]
pub struct ChunkMoment {
    /// The node's time.
    pub now: Micros,
    /// The store's, at least and at most.
    pub store: (Micros, Micros),
    /// True if the node holds its place: it may take a chunk.
    pub holds_place: bool,
    /// False once the node gives its place back: it spends no more.
    pub may_spend: bool,
    /// For how long a node denies by what the store has shown, if nothing ends that earlier.
    pub denies_for: Micros,
}

/// A call to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkCall {
    /// What it asks.
    pub ask: ChunkAsk,
    limit: Algorithm,
    /// Its number.
    asked: u64,
    /// When it was sent.
    sent: Micros,
}

/// What is to be done with what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkLeft {
    /// Nothing is left.
    Nothing,
    /// It may still be spent.
    Later,
    /// It is given back.
    GivesBack(ChunkCall),
}

impl ChunkCount {
    /// Decides on `cost` units, if the node can: from its chunk, or by what the store has shown.
    pub fn decide(
        &mut self,
        (limit, terms): (&Algorithm, &ChunkTerms),
        (op, cost): (ChunkOp, u64),
        moment: &ChunkMoment,
    ) -> Option<ChunkVerdict> {
        let left = self.spendable((limit, terms), moment);
        let passes = left > 0 && cost <= left;
        let shown =
            self.shown.as_ref().filter(|shown| passes || moment.now.0 < shown.heard.0 + moment.denies_for.0);
        if !passes && shown.is_none() {
            return None;
        }
        // What the store would decide if the node gave back first. The latest time drains most.
        let (mut state, at) = (shown.and_then(|shown| shown.state.clone()), moment.store.1);
        if left > 0 {
            decided(&mut state, limit, (Op::Refund, left), at);
        }
        let mut verdict = decided(&mut state, limit, (op.op(), cost), at);
        if passes {
            if let Some(chunk) = &mut self.chunk {
                chunk.left -= cost;
            }
            (verdict.limit.cause, verdict.limit.retry) = (None, Retry::Now);
            verdict.limit.remaining = verdict.limit.remaining.max(left - cost);
            (verdict.all.allowed, verdict.all.fitted, verdict.all.applied) = (true, true, true);
            verdict.all.granted = cost;
        }
        (passes || !verdict.all.allowed).then_some(verdict)
    }

    /// What the node asks after [`ChunkCount::decide`] could not: `times` calls of a cost. It gives back what is left, and
    /// takes a chunk if it may.
    pub fn ask(
        &mut self,
        (limit, terms): (&Algorithm, &ChunkTerms),
        (op, cost, times): (ChunkOp, u64, u64),
        moment: &ChunkMoment,
    ) -> ChunkCall {
        let waits = self.unanswered.is_some_and(|rest| moment.now < rest.until);
        let takes = cost > 0 && moment.holds_place && !waits;
        let chunk = if takes { terms.chunk } else { 0 };
        let ask = ChunkAsk { give_back: None, op, cost, times, chunk, lasts: terms.lasts() };
        let rest = self.take_rest().map(|(_, rest)| rest);
        self.call((ask, *limit), rest, moment.now)
    }

    /// Takes in the answer to a call, at `moment`, with the state that it leaves.
    pub fn learn(
        &mut self,
        call: &ChunkCall,
        answer: &ChunkAnswer,
        after: Option<State>,
        moment: &ChunkMoment,
    ) {
        if call.ask.give_back.is_some() && self.unanswered.is_some_and(|rest| rest.asked == call.asked) {
            self.unanswered = None;
        }
        // Without its place the node would have it for too long. It is lost then.
        if answer.has_chunk && self.chunk.is_none() && moment.holds_place {
            let taken = ChunkAsk::name_of(after.as_ref(), answer.now);
            // It was taken later than the call was sent.
            let until = Micros(call.sent.0 + call.lasts_for().0);
            self.chunk = Some(HeldChunk { limit: call.limit, left: call.ask.chunk, taken, until });
        }
        if self.shown.as_ref().is_none_or(|shown| shown.now <= answer.now) {
            self.shown = Some(ShownState { state: after, now: answer.now, heard: moment.now });
        }
    }

    /// What is left of the chunk: given back once it may not be spent any more, or at once if `at_once`.
    pub fn left(&mut self, terms: &ChunkTerms, moment: &ChunkMoment, at_once: bool) -> ChunkLeft {
        let Some(chunk) = self.chunk else { return ChunkLeft::Nothing };
        if !at_once && chunk.left > 0 && moment.now < chunk.until {
            return ChunkLeft::Later;
        }
        match self.take_rest() {
            None => ChunkLeft::Nothing,
            Some((limit, rest)) => {
                let ask = ChunkAsk { lasts: terms.lasts(), ..NOTHING };
                ChunkLeft::GivesBack(self.call((ask, limit), Some(rest), moment.now))
            }
        }
    }

    /// Until when the chunk may be spent, if there is one.
    #[must_use]
    pub fn chunk_until(&self) -> Option<Micros> {
        self.chunk.map(|chunk| chunk.until)
    }

    /// Forgets what the store has shown: it was changed otherwise.
    pub fn forget_shown(&mut self) {
        self.shown = None;
    }

    /// True if the node has nothing of the key, and nothing that it gave back can arrive any more.
    #[must_use]
    pub fn is_settled(&self, now: Micros) -> bool {
        self.chunk.is_none() && self.unanswered.is_none_or(|rest| rest.until <= now)
    }

    /// True if the node knows nothing of the key that it needs at its time `now`.
    #[must_use]
    pub fn is_idle(&self, now: Micros, denies_for: Micros) -> bool {
        self.is_settled(now) && self.shown.as_ref().is_none_or(|shown| shown.heard.0 + denies_for.0 <= now.0)
    }

    /// The units of the chunk that may be spent.
    #[must_use]
    pub fn spendable(&self, (limit, terms): (&Algorithm, &ChunkTerms), moment: &ChunkMoment) -> u64 {
        let Some(chunk) = &self.chunk else { return 0 };
        if !moment.may_spend || moment.now >= chunk.until || chunk.limit != *limit {
            return 0;
        }
        match terms.of {
            ChunkLimit::Bucket => chunk.left,
            // The whole error lies within the window.
            ChunkLimit::Window(length) => {
                let is_within = |time: Micros| (chunk.taken.0..chunk.taken.0 + length.0).contains(&time.0);
                if is_within(moment.store.0) && is_within(moment.store.1) { chunk.left } else { 0 }
            }
        }
    }

    fn take_rest(&mut self) -> Option<(Algorithm, GivenBack)> {
        let HeldChunk { limit, left, taken, .. } = self.chunk.take()?;
        (left > 0).then_some((limit, GivenBack { units: left, taken }))
    }

    fn call(
        &mut self,
        (ask, limit): (ChunkAsk, Algorithm),
        give_back: Option<GivenBack>,
        sent: Micros,
    ) -> ChunkCall {
        self.asked += 1;
        let asked = self.asked;
        if give_back.is_some() {
            // The store's clock may be the slower one.
            let lasts = ask.lasts.0 + (ask.lasts.0 / 1_000_000 + 1) * 2 * DRIFT_PPM;
            self.unanswered = Some(UnansweredRest { asked, until: Micros(sent.0 + lasts) });
        }
        ChunkCall { ask: ChunkAsk { give_back, ..ask }, limit, asked, sent }
    }
}

/// A call that asks nothing.
const NOTHING: ChunkAsk =
    ChunkAsk { give_back: None, op: ChunkOp::Charge, cost: 0, times: 0, chunk: 0, lasts: Micros::ZERO };

impl ChunkCall {
    /// The limit that is asked.
    #[must_use]
    pub const fn limit(&self) -> &Algorithm {
        &self.limit
    }

    /// When it was sent.
    #[must_use]
    pub const fn sent(&self) -> Micros {
        self.sent
    }

    /// For how long its chunk may be spent.
    const fn lasts_for(&self) -> Micros {
        Micros(self.ask.lasts.0 / 2)
    }
}

impl ChunkTerms {
    /// How old a chunk of a bucket may be when it is given back.
    #[must_use]
    pub const fn lasts(&self) -> Micros {
        Micros(2 * self.max_age.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approximate::SharedChunk;

    const MAX_AGE: Micros = Micros(1_000_000);
    const LENGTH: Micros = Micros(10_000_000);
    const TERMS: ChunkTerms = ChunkTerms { chunk: 10, max_age: MAX_AGE, of: ChunkLimit::Window(LENGTH) };

    /// A node whose clock is that of the store, known up to 1 ms.
    fn moment(now: u64) -> ChunkMoment {
        ChunkMoment {
            now: Micros(now),
            store: (Micros(now - 500), Micros(now + 500)),
            holds_place: true,
            may_spend: true,
            denies_for: Micros(300_000),
        }
    }

    struct OneNode {
        limit: Algorithm,
        shared: SharedChunk,
        count: ChunkCount,
        calls: u64,
    }

    impl OneNode {
        fn of(limit: u64) -> Self {
            let limit = Algorithm::fixed_window(limit, LENGTH, false, false).unwrap();
            Self { limit, shared: SharedChunk::default(), count: ChunkCount::default(), calls: 0 }
        }

        fn charge(&mut self, cost: u64, now: u64) -> bool {
            let asked = (ChunkOp::Charge, cost);
            if let Some(verdict) = self.count.decide((&self.limit, &TERMS), asked, &moment(now)) {
                return verdict.all.allowed;
            }
            let call = self.count.ask((&self.limit, &TERMS), (ChunkOp::Charge, cost, 1), &moment(now));
            self.send(&call, now) == 1
        }

        fn spendable(&self, now: u64) -> u64 {
            self.count.spendable((&self.limit, &TERMS), &moment(now))
        }

        fn send(&mut self, call: &ChunkCall, now: u64) -> u64 {
            self.calls += 1;
            let answer = self.shared.answer(&self.limit, &call.ask, Micros(now));
            let after = answer.verdicts(&self.limit, &call.ask, |_| ()).unwrap();
            self.count.learn(call, &answer, after, &moment(now));
            answer.passed
        }
    }

    #[test]
    fn a_chunk_saves_calls_until_nothing_is_left() {
        let mut node = OneNode::of(25);
        let passed = (0..40).filter(|_| node.charge(1, 100_000_600)).count();
        // 1 and a chunk of 10, the same again, and then 3 calls alone.
        assert_eq!((passed, node.calls), (25, 5));
        assert!(!node.charge(1, 100_300_599) && node.calls == 5, "the store has shown it");
        assert!(!node.charge(1, 100_300_600) && node.calls == 6, "it is asked again");
    }

    #[test]
    fn what_does_not_suffice_is_given_back_with_the_call() {
        let mut node = OneNode::of(25);
        assert!(node.charge(4, 100_000_600) && node.charge(9, 100_000_600));
        // 14 are charged, 1 of them is left: 1 is given back, 12 are charged, and no chunk fits.
        assert!(node.charge(12, 100_000_600));
        assert_eq!(node.calls, 2);
        assert!(!node.charge(1, 100_000_600), "25 are used");
    }

    #[test]
    fn a_chunk_ends_with_its_age_and_before_its_window() {
        let mut node = OneNode::of(100);
        assert!(node.charge(1, 100_000_600) && node.charge(1, 101_000_599));
        assert_eq!((node.calls, node.spendable(101_000_600)), (1, 0));
        assert_eq!(node.count.left(&TERMS, &moment(101_000_599), false), ChunkLeft::Later);
        let ChunkLeft::GivesBack(call) = node.count.left(&TERMS, &moment(101_000_600), false) else {
            panic!()
        };
        assert_eq!(call.ask.give_back, Some(GivenBack { units: 9, taken: Micros(100_000_000) }));
        assert_eq!(node.count.left(&TERMS, &moment(101_000_600), false), ChunkLeft::Nothing, "once");
        // No chunk while it is not answered, for twice its age at most.
        let ask = |node: &mut OneNode, now| {
            node.count.ask((&node.limit, &TERMS), (ChunkOp::Charge, 1, 1), &moment(now)).ask.chunk
        };
        assert_eq!(ask(&mut node, 103_000_600), 0);
        assert_eq!(ask(&mut node, 103_007_000), 10);
        assert_eq!(node.send(&call, 103_007_000), 0);
        assert!(node.charge(1, 109_500_000));
        assert_eq!(node.spendable(109_999_499), 10);
        assert_eq!(node.spendable(109_999_500), 0, "it may be the next window");
        let alone = ChunkMoment { holds_place: false, ..moment(109_500_000) };
        assert_eq!(node.count.ask((&node.limit, &TERMS), (ChunkOp::Charge, 1, 1), &alone).ask.chunk, 0);
    }
}
