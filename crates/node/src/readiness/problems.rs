//! Problems of the store as text, one line each: which, since when, why, and how to solve it.

use std::fmt;
use std::sync::Arc;

use prost_types::Timestamp;

use weir_store::backend::{Problem, Since};
use weir_time::clock::monotonic;
use weir_units::{LastedFor, Micros};

/// Reason that some or all decisions cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Arc<[Problem]>);

/// `2026-11-22T18:43:35Z (for 12 s)`.
struct SinceWhen(Since);

impl From<Vec<Problem>> for Problems {
    fn from(problems: Vec<Problem>) -> Self {
        Self(problems.into())
    }
}

impl Problems {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lines, each with `label` before it.
    pub(super) fn lines(&self, label: &str) -> String {
        let line = |problem: &Problem| {
            let Problem { what, since, reason, remedy } = problem;
            format!("{label}{what} since {}: {reason}; what to do: {remedy}\n", SinceWhen(*since))
        };
        self.0.iter().map(line).collect()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.lines("").trim_end())
    }
}

impl fmt::Display for SinceWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Since { wall: Micros(micros), instant }) = self;
        let seconds = i64::try_from(micros / 1_000_000).unwrap_or(i64::MAX);
        let passed = monotonic().saturating_duration_since(*instant).as_secs();
        write!(f, "{} (for {})", Timestamp { seconds, nanos: 0 }, LastedFor(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_since_when_in_both_ways() {
        let since = Since { wall: Micros(1_704_067_200_999_999), ..Since::now() };
        let problem = |what: &str| Problem {
            what: what.to_owned(),
            since,
            reason: "OOM".to_owned(),
            remedy: "raise it".to_owned(),
        };
        let problems = Problems::from(vec![problem("one"), problem("two")]);
        assert_eq!(
            problems.lines("note: "),
            "note: one since 2024-01-01T00:00:00Z (for 0 s): OOM; what to do: raise it\n\
             note: two since 2024-01-01T00:00:00Z (for 0 s): OOM; what to do: raise it\n"
        );
    }
}
