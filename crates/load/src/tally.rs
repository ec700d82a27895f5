//! Counts of one thread, and of all together.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::outcome::{CallOutcome, Failure, LoadCall};
use crate::client::code_name;

/// Longest latency with a bucket of its own: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant digits of latencies.
const DIGITS: u8 = 3;

/// Outcomes of the calls of a run. `asked = allowed + denied + failed`, when all calls have ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that were made.
    pub calls: u64,
    /// Requested decisions: several per call in a batch.
    pub asked: u64,
    /// Allowed calls.
    pub allowed: u64,
    /// Denied calls.
    pub denied: u64,
    /// Allowed and denied calls that a failure policy decided, because the store failed.
    pub degraded: u64,
    /// Requests that ended in an error.
    pub failed: u64,
}

impl Counts {
    /// Decisions that were made.
    #[must_use]
    pub const fn decisions(&self) -> u64 {
        self.allowed + self.denied
    }
}

/// Failed requests with the same error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Errors {
    pub(super) count: u64,
    /// Message of the first of them.
    pub(super) example: String,
}

#[derive(Debug, Clone)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    pub(super) errors: BTreeMap<String, Errors>,
    /// Times from a call's scheduled start to its answer, in ns.
    pub(super) latency: Histogram<u64>,
    /// Times from a call's scheduled start to its sending, in ns.
    pub(super) lateness: Histogram<u64>,
    /// Scheduled calls that were never made, because there was no room.
    pub(super) missed: u64,
    /// Calls during the warm-up.
    pub(super) warm_up_calls: u64,
    /// End of the last counted call.
    pub(super) last_ns: u64,
    /// Reason why the run ended early.
    pub(super) gave_up: Option<String>,
}

impl Tally {
    pub(super) fn new() -> Result<Self, hdrhistogram::CreationError> {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)?;
        Ok(Self {
            counts: Counts::default(),
            errors: BTreeMap::new(),
            latency: histogram.clone(),
            lateness: histogram,
            missed: 0,
            warm_up_calls: 0,
            last_ns: 0,
            gave_up: None,
        })
    }

    /// Counts a call that was made.
    pub(super) fn sent(&mut self, call: LoadCall, decisions: usize, is_open: bool) {
        if !call.counts {
            self.warm_up_calls += 1;
            return;
        }
        self.counts.calls += 1;
        self.counts.asked += decisions as u64;
        if is_open {
            self.lateness.saturating_record((call.sent_ns - call.due_ns).max(1));
        }
    }

    /// Counts the end of a call.
    pub(super) fn ended(&mut self, outcome: CallOutcome, decisions: usize, now_ns: u64) {
        self.last_ns = self.last_ns.max(now_ns);
        let answer = match outcome.result {
            Ok(answer) => answer,
            Err(failure) => {
                let (name, message) = named(failure);
                return self.failed(name, message, decisions as u64);
            }
        };
        self.latency.saturating_record(now_ns.saturating_sub(outcome.call.due_ns).max(1));
        self.counts.allowed += u64::from(answer.allowed);
        self.counts.denied += u64::from(answer.denied);
        self.counts.degraded += u64::from(answer.degraded);
        let mut answered = u64::from(answer.allowed) + u64::from(answer.denied);
        if let Some(failed) = answer.failed {
            for (code, count) in failed.by_code {
                answered += u64::from(count);
                self.failed(code_name(code).to_owned(), failed.message.clone(), count.into());
            }
        }
        let unanswered = (decisions as u64).saturating_sub(answered);
        if unanswered > 0 {
            self.failed("unanswered".to_owned(), "the answer has too few results".to_owned(), unanswered);
        }
    }

    fn failed(&mut self, name: String, message: String, count: u64) {
        self.counts.failed += count;
        let errors = self.errors.entry(name).or_default();
        if errors.count == 0 {
            errors.example = message;
        }
        errors.count += count;
    }

    /// Adds another thread's counts.
    pub(super) fn add(&mut self, other: Self) {
        let (counts, more) = (&mut self.counts, other.counts);
        counts.calls += more.calls;
        counts.asked += more.asked;
        counts.allowed += more.allowed;
        counts.denied += more.denied;
        counts.degraded += more.degraded;
        for (name, errors) in other.errors {
            self.failed(name, errors.example, errors.count);
        }
        // They have the same bounds.
        let _ = self.latency.add(other.latency);
        let _ = self.lateness.add(other.lateness);
        self.missed += other.missed;
        self.warm_up_calls += other.warm_up_calls;
        self.last_ns = self.last_ns.max(other.last_ns);
        self.gave_up = self.gave_up.take().or(other.gave_up);
    }
}

/// The name under which a failure is counted, and its message.
pub(super) fn named(failure: Failure) -> (String, String) {
    let name = match failure {
        Failure::Status(code, message) => return (code_name(code).to_owned(), message),
        Failure::Http(status) => format!("HTTP {status}"),
        Failure::Reset(code) => format!("stream reset ({code})"),
        Failure::Malformed => "malformed answer".to_owned(),
        Failure::Lost => "connection lost".to_owned(),
        Failure::Timeout => "timeout".to_owned(),
    };
    (name, String::new())
}
