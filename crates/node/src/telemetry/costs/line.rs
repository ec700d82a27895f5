//! The log line about a limit that is nearly used.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use weir_time::clock::monotonic;

/// Shortest time between two lines about one limit.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The last line about each limit, by its strategy and its name, and how many were left out since.
type SaidLines = BTreeMap<(Box<str>, Box<str>), (Instant, u64)>;

/// Says that a limit is nearly used: at most one line in ten seconds, with the count of those that were left out.
pub(super) fn say((strategy, limit): (&str, &str), consumer: &str, (remaining, most): (u64, u64)) {
    static SAID: Mutex<SaidLines> = Mutex::new(BTreeMap::new());
    let due = due(&mut SAID.lock(), (strategy, limit), monotonic());
    let Some(left_out) = due else { return };
    tracing::info!(strategy, limit, consumer, remaining, most, left_out, "a limit is nearly used");
}

/// Returns the number of lines about a limit that were left out, if the next one is due.
fn due(said: &mut SaidLines, (strategy, limit): (&str, &str), now: Instant) -> Option<u64> {
    match said.get_mut(&(strategy.into(), limit.into())) {
        Some((at, left_out)) if now.saturating_duration_since(*at) < LINE_EVERY => {
            *left_out += 1;
            None
        }
        Some(known) => Some(std::mem::replace(known, (now, 0)).1),
        None => {
            // Limits of older configurations need no place.
            said.retain(|_, (at, _)| now.saturating_duration_since(*at) < LINE_EVERY);
            said.insert((strategy.into(), limit.into()), (now, 0));
            Some(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_one_line_in_ten_seconds_which_counts_those_left_out() {
        let (mut said, start) = (SaidLines::default(), monotonic());
        let mut line =
            |limit: &str, seconds| due(&mut said, ("llm", limit), start + Duration::from_secs(seconds));
        assert_eq!([0, 1, 9].map(|second| line("output", second)), [Some(0), None, None]);
        assert_eq!(line("input", 9), Some(0), "each limit has its own");
        assert_eq!([10, 11, 20].map(|second| line("output", second)), [Some(2), None, Some(1)]);
        line("other", 40);
        assert_eq!(said.len(), 1, "old ones need no place");
    }
}
