//! Tests of the pace, on times that they make up.

use super::*;

const DEADLINE: Duration = Duration::from_millis(50);

struct PacedNode {
    pace: NodePace,
    now: Instant,
}

impl PacedNode {
    fn new() -> Self {
        Self { pace: NodePace::new(DEADLINE, Duration::ZERO), now: weir_time::clock::monotonic() }
    }

    /// Answers a call of so many decisions that came `waited_ms` ago and took `took_us`, `after_us` the one before.
    fn answer(&mut self, decisions: usize, waited_ms: u64, took_us: u64, after_us: u64) {
        self.land(decisions, waited_ms, took_us, after_us, true);
    }

    fn land(&mut self, decisions: usize, waited_ms: u64, took_us: u64, after_us: u64, is_answered: bool) {
        self.now += Duration::from_micros(after_us);
        let queued = self.now - Duration::from_millis(waited_ms);
        let sent = self.now - Duration::from_micros(took_us);
        let cost = 4_000 * decisions as ScriptCost;
        self.pace.landed(LandedCall { decisions, cost, queued, sent, is_answered }, self.now);
    }

    /// The most decisions ahead of one that is still in time.
    fn takes(&self) -> usize {
        let in_time = |ahead: &usize| self.pace.is_in_time(*ahead, DEADLINE);
        (0..100_000).take_while(in_time).last().unwrap()
    }

    /// Makes it so slow that each decision takes a millisecond.
    fn slow(&mut self) {
        (0..200).for_each(|_| self.answer(10, 45, 20_000, 10_000));
    }
}

#[test]
fn a_new_node_takes_everything_and_a_fast_one_keeps_doing_so() {
    let mut node = PacedNode::new();
    assert_eq!(node.takes(), 99_999);
    (0..1_000).for_each(|_| node.answer(1, 1, 1_000, 500));
    assert_eq!(node.takes(), 99_999, "one at a time tells nothing of many");
}

#[test]
fn a_far_node_is_not_a_slow_one() {
    let mut node = PacedNode::new();
    (0..1_000).for_each(|_| node.answer(2, 31, 30_000, 15_000));
    assert_eq!(node.takes(), 99_999);
}

#[test]
fn what_is_answered_late_is_measured() {
    let mut node = PacedNode::new();
    node.answer(1, 0, 300, 0);
    node.slow();
    let takes = node.takes();
    assert!((35..=45).contains(&takes), "40 are 40 ms, and a fifth is kept: {takes}");
    assert!(!node.pace.is_in_time(takes, DEADLINE / 2), "who has half of the time is refused earlier");
}

#[test]
fn a_slow_phase_is_forgotten_with_the_first_answers_in_time() {
    let mut node = PacedNode::new();
    node.answer(1, 0, 300, 0);
    node.slow();
    node.answer(20, 1, 1_000, 1_000);
    assert!(node.takes() > 700, "a call of 20 took 1 ms: {}", node.takes());
    (0..10).for_each(|_| node.answer(500, 4, 4_000, 4_000));
    assert!(node.takes() > 4_500, "{}", node.takes());
}

/// A node that answers nothing takes a few, so that it is noticed when it is back.
#[test]
fn some_are_always_asked() {
    let mut node = PacedNode::new();
    (0..20).for_each(|_| node.land(100, 50, 50_000, 10_000, false));
    assert_eq!(node.takes(), ALWAYS - 1);
    node.answer(ALWAYS, 1, 500, 1_000);
    assert!(node.takes() > 1_000);
}

#[test]
fn calls_are_filled_by_the_time_that_the_fastest_take() {
    let mut node = PacedNode::new();
    assert_eq!(node.pace.call_cost(), CALL_COST);
    // Half as fast as the table: 2 ms of cost take 4 ms, and some have waited besides.
    (0..FASTEST_OF).for_each(|call| node.answer(500, 5, 4_000 + 1_000 * u64::from(call % 7), 20_000));
    assert_eq!(node.pace.call_cost(), CALL_COST / 2);
    // However slow, a call has work.
    (0..FASTEST_OF).for_each(|_| node.answer(500, 5, 40_000, 50_000));
    assert_eq!(node.pace.call_cost(), CALL_COST / 4);
    (0..FASTEST_OF).for_each(|_| node.answer(500, 5, 100, 20_000));
    assert_eq!(node.pace.call_cost(), 2 * CALL_COST, "what may cost that much at worst is bounded");
    // Of single decisions the round trip is most of the time.
    (0..1_000).for_each(|_| node.answer(1, 1, 30_000, 20_000));
    assert_eq!(node.pace.call_cost(), 2 * CALL_COST);
}
