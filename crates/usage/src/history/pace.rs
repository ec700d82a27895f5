//! Bounds the CPU time of questions to a tenth of a core, for all callers together. A question waits for its turn; when
//! too many wait, further ones are refused.

use std::time::{Duration, Instant};

/// Units of time that must pass for each unit of CPU time.
const PARTS: u32 = 10;

/// CPU time that may be used at once, so that a person who asks now and then never waits.
const BURST: Duration = Duration::from_millis(250);

/// Pace of the questions: a bucket of CPU time that fills at a tenth of the time.
#[derive(Debug, Default)]
pub(super) struct QuestionPace {
    /// Time at which all CPU time used so far is paid for.
    paid: Option<Instant>,
}

impl QuestionPace {
    /// Records that an answer took so much CPU time.
    pub(super) fn took(&mut self, busy: Duration, now: Instant) {
        let from = self.paid.map_or(now, |paid| paid.max(now));
        self.paid = Some(from + busy * PARTS);
    }

    /// Earliest start of the next question, which may be past.
    pub(super) fn next(&self, now: Instant) -> Instant {
        let paid = self.paid.unwrap_or(now);
        paid.checked_sub(BURST * PARTS).map_or(now, |next| next.max(now))
    }
}

#[cfg(test)]
mod tests {
    use weir_time::clock;

    use super::*;

    /// Callers who ask without end take a tenth of a core, however long an answer takes.
    #[test]
    fn all_questions_together_take_a_tenth_of_a_core() {
        let begin = clock::monotonic();
        for busy in [1, 40, 2_400].map(Duration::from_millis) {
            let (mut pace, mut now, mut used, mut answers) =
                (QuestionPace::default(), begin, Duration::ZERO, 0);
            let end = begin + Duration::from_secs(600);
            while now < end {
                now = pace.next(now) + busy;
                pace.took(busy, now);
                used += busy;
                answers += 1;
            }
            let most = Duration::from_secs(60) + BURST + 2 * busy;
            assert!(used <= most, "{busy:?}: {used:?}");
            assert!(used >= Duration::from_secs(50), "{busy:?}: {used:?} in {answers}");
        }
    }

    #[test]
    fn who_asks_now_and_then_never_waits() {
        let (mut pace, begin) = (QuestionPace::default(), clock::monotonic());
        for second in 0..600 {
            let now = begin + Duration::from_secs(second);
            assert_eq!(pace.next(now), now);
            pace.took(Duration::from_millis(90), now);
        }
    }
}
