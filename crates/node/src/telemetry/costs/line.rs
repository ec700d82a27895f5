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
    let now = monotonic();
    let mut said = SAID.lock();
    let left_out = match said.get_mut(&(strategy.into(), limit.into())) {
        Some((at, left_out)) if now.saturating_duration_since(*at) < LINE_EVERY => {
            *left_out += 1;
            return;
        }
        Some(known) => std::mem::replace(known, (now, 0)).1,
        None => {
            // Limits of older configurations need no place.
            said.retain(|_, (at, _)| now.saturating_duration_since(*at) < LINE_EVERY);
            said.insert((strategy.into(), limit.into()), (now, 0));
            0
        }
    };
    drop(said);
    tracing::info!(strategy, limit, consumer, remaining, most, left_out, "a limit is nearly used");
}
