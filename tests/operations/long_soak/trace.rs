//! A search for callers that a trace of decisions let through too often: in one pass, for traces of any length.
//!
//! A decision was made at some time between the sending of its call and the arrival of its answer. So
//! only that is held against a limit which is certain: of calls that were all sent after one time and all
//! answered before another, no more may have been allowed than the limit allows between the two.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// At most `burst` at once, and so many more in every second.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    pub burst: u64,
    pub per_second: u64,
}

/// At most so many in any window.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    pub limit: usize,
    pub window_us: u64,
}

/// The allowed calls so far, by key.
#[derive(Debug)]
pub struct Admission {
    bucket: Bucket,
    log: Log,
    keys: HashMap<u64, Key>,
    pub decisions: u64,
    pub allowed: u64,
    over: Vec<String>,
}

#[derive(Debug, Default)]
struct Key {
    /// Calls that were allowed since then.
    since_us: u64,
    count: u64,
    allowed: u64,
    /// Times at which the last calls were sent and answered.
    recent: VecDeque<(u64, u64)>,
}

/// The clocks of the service and of the record may run apart by so much of a call.
const SLACK: i128 = MILLION / 10;
const MILLION: i128 = 1_000_000;

impl Admission {
    pub fn new(bucket: Bucket, log: Log) -> Self {
        Self { bucket, log, keys: HashMap::new(), decisions: 0, allowed: 0, over: Vec::new() }
    }

    /// A line of the record: when sent, when answered, key, result. Lines come in the order of the answers.
    pub fn read(&mut self, line: &str) {
        let mut fields = line.split(',');
        let mut number = || fields.next().and_then(|text| text.parse().ok());
        let (Some(sent_us), Some(answered_us), Some(key)) = (number(), number(), number()) else {
            panic!("{line:?} is no line of a record")
        };
        self.decisions += 1;
        match fields.next() {
            Some("allowed") => self.allow(sent_us, answered_us, key),
            Some("denied") => {}
            other => panic!("{other:?} is no decision"),
        }
    }

    /// A call of cost 1 was allowed.
    pub fn allow(&mut self, sent_us: u64, answered_us: u64, key: u64) {
        self.allowed += 1;
        let state = self.keys.entry(key).or_default();
        state.allowed += 1;
        let over_bucket = state.fill(self.bucket, sent_us, answered_us);
        if over_bucket > i128::from(self.bucket.burst) * MILLION + SLACK {
            self.over.push(format!("key {key} at {answered_us} µs: bucket, {over_bucket} millionths"));
        }
        let in_window = state.remember(self.log.window_us, sent_us, answered_us);
        if in_window > self.log.limit {
            self.over.push(format!("key {key} at {answered_us} µs: log, {in_window} within a window"));
        }
    }

    /// Returns how often anybody was let through too often.
    pub fn over(&self) -> usize {
        self.over.len()
    }

    pub fn assert_none_over(&self) {
        assert!(self.over.is_empty(), "{} times over the limit, first: {}", self.over(), self.over[0]);
    }

    /// Exact is not stingy: the busiest key was let through as often as it could, within a twentieth.
    pub fn assert_busiest_got_its_due(&self, span: Duration) {
        let due = self.bucket.burst + self.bucket.per_second * span.as_secs();
        let due = due.min(self.log.limit as u64 * span.as_micros() as u64 / self.log.window_us);
        let busiest = self.keys[&0].allowed;
        assert!(busiest * 20 >= due * 19, "{busiest} of {due} calls of the busiest key were allowed");
    }
}

impl Key {
    /// The most by which any row of calls up to this one exceeds what the bucket has let in meanwhile, in
    /// millionths of a call. Either the row that was worst goes on, or a new one begins.
    fn fill(&mut self, bucket: Bucket, sent_us: u64, answered_us: u64) -> i128 {
        let excess = |count: u64, since_us: u64| {
            // Times were cut to the microsecond.
            let span_us = i128::from(answered_us + 1 - since_us);
            i128::from(count) * MILLION - i128::from(bucket.per_second) * span_us
        };
        let (longer, since_us) = (self.count + 1, self.since_us.min(sent_us));
        if self.count > 0 && excess(longer, since_us) >= excess(1, sent_us) {
            (self.count, self.since_us) = (longer, since_us);
        } else {
            (self.count, self.since_us) = (1, sent_us);
        }
        excess(self.count, self.since_us)
    }

    /// Counts the calls, with this one, that were sent and answered within a window that ends now.
    fn remember(&mut self, window_us: u64, sent_us: u64, answered_us: u64) -> usize {
        let begin_us = (answered_us + 1).saturating_sub(window_us);
        while self.recent.front().is_some_and(|&(_, answered)| answered < begin_us) {
            self.recent.pop_front();
        }
        self.recent.push_back((sent_us, answered_us));
        self.recent.iter().filter(|&&(sent, _)| sent >= begin_us).count()
    }
}

/// The checker can object, and does not without reason.
mod tests {
    use super::*;

    const BUCKET: Bucket = Bucket { burst: 20, per_second: 5 };
    const LOG: Log = Log { limit: 60, window_us: 10_000_000 };

    /// A service under a call every 10 ms for a minute, with answers that take up to 40 ms, in disorder.
    /// It has `extra` more in its bucket and its log than it should.
    fn over(extra_burst: u64, extra_log: usize) -> usize {
        let (mut level, mut last, mut log) = (0_u64, 0_u64, VecDeque::new());
        let mut answers = Vec::new();
        for step in 0..6_000_u64 {
            let at_us = step * 10_000;
            level = level.saturating_sub(BUCKET.per_second * (at_us - last));
            last = at_us;
            while log.front().is_some_and(|&then| then + LOG.window_us <= at_us) {
                log.pop_front();
            }
            let fits = level + 1_000_000 <= (BUCKET.burst + extra_burst) * 1_000_000;
            if fits && log.len() < LOG.limit + extra_log {
                level += 1_000_000;
                log.push_back(at_us);
                let (before, after) = (step * 7_919 % 20_000, step * 104_729 % 20_000);
                answers.push((at_us.saturating_sub(before), at_us + after));
            }
        }
        answers.sort_by_key(|&(_, answered)| answered);
        let mut admission = Admission::new(BUCKET, LOG);
        for (sent, answered) in answers {
            admission.allow(sent, answered, 7);
        }
        admission.over()
    }

    #[test]
    fn an_exact_service_is_not_accused() {
        assert_eq!(over(0, 0), 0);
    }

    #[test]
    fn one_call_too_many_is_found() {
        assert!(over(1, 0) > 0, "in the bucket");
        assert!(over(0, 1) > 0, "in the log");
    }
}
