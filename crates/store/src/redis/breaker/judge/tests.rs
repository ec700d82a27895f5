use super::*;
use weir_time::clock::monotonic;

const NONE: CallSums = CallSums { calls: 0, failed: 0 };

/// A judge, and a clock that starts at 0 ms.
struct Case {
    judge: BreakerJudge,
    start: Instant,
}

impl Case {
    fn new() -> Self {
        Self { judge: BreakerJudge::default(), start: monotonic() }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn failed(&mut self, ms: u64) -> Option<BreakerChange> {
        self.judge.failed(self.at(ms), NONE, "it failed")
    }

    fn answered(&mut self, ms: u64) -> Option<BreakerChange> {
        self.judge.succeeded(self.at(ms), self.at(ms))
    }

    fn open() -> Self {
        let mut case = Self::new();
        let changes = [0, 25, 50, 75, 100].map(|ms| case.failed(ms));
        assert_eq!(changes, [None, None, None, None, Some(BreakerChange::Opened)]);
        case
    }
}

#[test]
fn five_failures_in_a_row_over_100_ms_open_it() {
    let case = Case::open();
    assert_eq!(case.judge.share(case.at(100)), AdmittedShare::None);
    assert_eq!(case.judge.open(), Some((case.at(100), "it failed".into())));
}

#[test]
fn one_stall_at_a_high_rate_opens_nothing() {
    let mut case = Case::new();
    for tenths in 0..300 {
        assert_eq!(case.failed(tenths / 10), None, "all of them within 30 ms");
    }
    assert_eq!(case.answered(31), None);
    for ms in [60, 90, 120, 131] {
        assert_eq!(case.failed(ms), None, "the run has begun anew");
    }
    assert!(case.judge.is_troubled());
    assert_eq!(case.failed(160), Some(BreakerChange::Opened));
}

#[test]
fn half_of_twenty_calls_in_a_second_open_it() {
    let mut case = Case::new();
    let sums = |calls, failed| CallSums { calls, failed };
    let at = case.at(1);
    assert_eq!(case.judge.failed(at, sums(19, 19), "few"), None);
    assert_eq!(case.judge.failed(at, sums(21, 10), "less than half"), None);
    assert_eq!(case.judge.failed(at, sums(20, 10), "half"), Some(BreakerChange::Opened));
}

#[test]
fn the_first_answer_admits_a_tenth_then_half_then_all() {
    let mut case = Case::open();
    assert!(case.judge.is_troubled(), "an answer must be told");
    assert_eq!(case.failed(300), None);
    // Whenever the call was sent: what is read now was answered by the node.
    assert_eq!(case.judge.succeeded(case.at(90), case.at(500)), Some(BreakerChange::Ramp));
    assert!(!case.judge.is_troubled());
    let shares = [500, 599, 600, 699, 700].map(|ms| case.judge.share(case.at(ms)));
    assert_eq!(
        shares,
        [
            AdmittedShare::Tenth,
            AdmittedShare::Tenth,
            AdmittedShare::Half,
            AdmittedShare::Half,
            AdmittedShare::All
        ]
    );
    assert_eq!(case.judge.settle(case.at(699)), None);
    assert!(case.judge.open().is_some());
    assert_eq!(case.judge.settle(case.at(700)), Some(BreakerChange::Closed));
    assert_eq!(case.judge.settle(case.at(701)), None);
    assert!(case.judge.open().is_none());
}

/// A node that fails now and then would otherwise stay open for half of the time.
#[test]
fn one_failure_during_the_ramp_does_not_open_it_again() {
    let mut case = Case::open();
    assert_eq!(case.answered(300), Some(BreakerChange::Ramp));
    assert_eq!(case.failed(299), None, "it was sent before");
    assert!(!case.judge.is_troubled());
    assert_eq!(case.failed(310), None);
    let changes = [330, 350, 370, 410].map(|ms| case.failed(ms));
    assert_eq!(changes, [None, None, None, Some(BreakerChange::Opened)]);
    assert_eq!(case.judge.open(), Some((case.at(100), "it failed".into())), "since it opened first");
}
