//! Bounds the lines of refused calls: one a second per caller and method, and one a second in all after the first thousand.
//!
//! Anybody can make refused calls. Without the second bound, a crowd of them would rotate the lines of changes out of
//! the files within hours; with it, the five files hold at least three days.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::known_methods::KnownMethods;

/// Shortest time between two lines of one caller and method.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Lines that all callers together may have at once. One a second is added.
const BURST: u64 = 1_000;

/// Pairs of caller and method that are remembered.
const MAX_PAIRS: usize = 4_096;

/// Longest name of a caller in a line, in characters.
const MAX_CALLER: usize = 256;

/// Paths of the HTTP ports. Others have one name, because a caller can make up any number of them.
const PATHS: [&str; 5] = ["/metrics", "/ui/data", "/ui/control", "/json", "the connection"];

pub(super) struct RefusedCall<'a> {
    /// The caller, or its address.
    pub(super) by: &'a str,
    pub(super) method: &'a str,
}

#[derive(Debug)]
pub(super) struct RefusalLines {
    pairs: HashMap<u64, PairLine>,
    hasher: RandomState,
    /// Lines that may be written now.
    allowance: u64,
    /// Time at which the allowance last grew.
    grown_at: Instant,
}

#[derive(Debug)]
struct PairLine {
    at: Instant,
    left_out: u64,
}

impl RefusalLines {
    pub(super) fn new(now: Instant) -> Self {
        Self { pairs: HashMap::new(), hasher: RandomState::new(), allowance: BURST, grown_at: now }
    }

    /// Returns how many refusals of this caller and method were left out since their last line; `None` if this one is too.
    pub(super) fn due(&mut self, refusal: &RefusedCall<'_>, now: Instant) -> Option<u64> {
        let seconds = now.saturating_duration_since(self.grown_at).as_secs();
        self.allowance = BURST.min(self.allowance.saturating_add(seconds));
        self.grown_at += Duration::from_secs(seconds);
        let pair = self.hasher.hash_one((source_of(refusal.by), refusal.method));
        let is_recent = |line: &PairLine| now.saturating_duration_since(line.at) < LINE_EVERY;
        if let Some(line) = self.pairs.get_mut(&pair)
            && (is_recent(line) || self.allowance == 0)
        {
            line.left_out = line.left_out.saturating_add(1);
            return None;
        }
        if self.allowance == 0 {
            return None;
        }
        if self.pairs.len() >= MAX_PAIRS && !self.pairs.contains_key(&pair) {
            self.pairs.retain(|_, line| is_recent(line));
            if self.pairs.len() >= MAX_PAIRS {
                return None;
            }
        }
        self.allowance -= 1;
        let before = self.pairs.insert(pair, PairLine { at: now, left_out: 0 });
        Some(before.map_or(0, |line| line.left_out))
    }
}

/// Source of a call: an address without its port, because each connection has another one.
fn source_of(by: &str) -> Cow<'_, str> {
    by.parse::<SocketAddr>().map_or(Cow::Borrowed(by), |address| Cow::Owned(address.ip().to_string()))
}

/// The name of a caller, cut to a bound.
pub(super) fn shortened(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_CALLER) {
        Some((end, _)) => Cow::Owned(format!("{}…", name.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(name),
    }
}

/// The method of a refusal: that of a known path, or the one that is served.
pub(super) fn method_of(known: &KnownMethods, what: &str, served: &'static str) -> &'static str {
    if let Some(name) = known.name_of(what) {
        return name;
    }
    match PATHS.iter().find(|path| **path == what) {
        Some(path) => path,
        None if what.starts_with('/') || served.is_empty() => "an unknown method",
        None => served,
    }
}

#[cfg(test)]
mod tests {
    use weir_time::clock::monotonic;

    use super::*;

    fn refusal<'a>(by: &'a str, method: &'a str) -> RefusedCall<'a> {
        RefusedCall { by, method }
    }

    #[test]
    fn a_caller_has_one_line_a_second_for_each_method() {
        let start = monotonic();
        let mut lines = RefusalLines::new(start);
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(lines.due(&refusal("token:a", "Reset"), at(0)), Some(0));
        assert_eq!(lines.due(&refusal("token:a", "Purge"), at(1)), Some(0));
        assert_eq!(lines.due(&refusal("token:b", "Reset"), at(2)), Some(0));
        for millis in 3..999 {
            assert_eq!(lines.due(&refusal("token:a", "Reset"), at(millis)), None);
        }
        assert_eq!(lines.due(&refusal("token:a", "Reset"), at(1_000)), Some(996));
    }

    /// A caller without a name cannot have a line for each connection.
    #[test]
    fn connections_of_one_address_are_one_caller() {
        let now = monotonic();
        let mut lines = RefusalLines::new(now);
        assert_eq!(lines.due(&refusal("10.0.0.1:4000", "Reset"), now), Some(0));
        assert_eq!(lines.due(&refusal("10.0.0.1:4001", "Reset"), now), None);
        assert_eq!(lines.due(&refusal("10.0.0.2:4000", "Reset"), now), Some(0));
        assert_eq!(lines.due(&refusal("[fd00::1]:1", "Reset"), now), Some(0));
        assert_eq!(lines.due(&refusal("[fd00::1]:2", "Reset"), now), None);
    }

    #[test]
    fn a_crowd_of_callers_has_a_thousand_lines_and_then_one_a_second() {
        let start = monotonic();
        let mut lines = RefusalLines::new(start);
        let mut written = 0;
        for second in 0..100 {
            let now = start + Duration::from_secs(second);
            let due = |caller: u64| lines.due(&refusal(&format!("token:{caller}"), "Reset"), now).is_some();
            written += (0..10_000).map(|caller| caller * 100 + second).map(due).filter(|due| *due).count();
        }
        assert_eq!(written, 1_000 + 99);
        assert!(lines.pairs.len() <= MAX_PAIRS, "{}", lines.pairs.len());
    }

    #[test]
    fn methods_are_those_of_the_code() {
        assert_eq!(method_of(&KnownMethods::default(), "/weir.v1.AdminService/Reset", ""), "Reset");
        assert_eq!(
            method_of(&KnownMethods::default(), "/weir.v1.AdminService/Nothing", ""),
            "an unknown method"
        );
        assert_eq!(method_of(&KnownMethods::default(), "/metrics", ""), "/metrics");
        assert_eq!(method_of(&KnownMethods::default(), "decide", "ShouldAllow"), "ShouldAllow");
        assert_eq!(method_of(&KnownMethods::default(), "decide", ""), "an unknown method");
        assert_eq!(shortened(&"é".repeat(300)).chars().count(), 257);
    }
}
