//! Log lines of rejected requests: each at debug, and at info one line a minute with a count for each kind.
//!
//! What callers send is not in the line at info, because anybody can send anything.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weir_grpc::current_peer;
use weir_time::clock;

use crate::label::labels;

/// Shortest time between two lines at info.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// Interval between checks for due log lines.
const POLL_EVERY: Duration = Duration::from_secs(1);

labels! {
    /// Kind of a rejected request.
    pub enum RejectedKind {
        /// The strategy is not configured.
        UnknownStrategy = "unknown_strategy",
        /// The resource has no strategy.
        UnknownResource = "unknown_resource",
        /// The queue is not configured.
        UnknownQueue = "unknown_queue",
        /// A field breaks its bound, or is missing.
        InvalidField = "invalid_field",
        /// The operation is not defined for what the request names.
        Unsupported = "unsupported",
        /// The id is known with other contents.
        OtherContents = "other_contents",
        /// The message cannot be read.
        Malformed = "malformed",
    }
}

const KINDS: usize = RejectedKind::ALL.len();

/// Counts of this process, as its log is one.
static COUNTS: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];

/// Returns the number of requests of each kind that this process has rejected.
pub fn rejected_by_kind() -> [(&'static str, u64); KINDS] {
    RejectedKind::ALL.map(|kind| (kind.name(), COUNTS[kind as usize].load(Relaxed)))
}

/// Counts a rejected request, and logs it at debug. `field` is the field that is wrong; empty if there is none.
#[cold]
pub fn log_rejected(kind: RejectedKind, method: &str, field: &str, error: &dyn Display) {
    COUNTS[kind as usize].fetch_add(1, Relaxed);
    let (peer, field) = (current_peer(), Some(field).filter(|field| !field.is_empty()));
    tracing::debug!(method, field, %peer, %error, "rejected");
}

/// Logs the line of each minute, for the life of the process.
pub async fn log_rejected_each_minute() {
    let mut minutes = RejectedMinutes::default();
    loop {
        tokio::time::sleep(POLL_EVERY).await;
        let now = COUNTS.each_ref().map(|count| count.load(Relaxed));
        if let Some(counts) = minutes.due(now, clock::monotonic()) {
            log_line(counts);
        }
    }
}

fn log_line(counts: [u64; KINDS]) {
    let of = |kind: RejectedKind| Some(counts[kind as usize]).filter(|count| *count > 0);
    tracing::info!(
        unknown_strategy = of(RejectedKind::UnknownStrategy),
        unknown_resource = of(RejectedKind::UnknownResource),
        unknown_queue = of(RejectedKind::UnknownQueue),
        invalid_field = of(RejectedKind::InvalidField),
        unsupported = of(RejectedKind::Unsupported),
        other_contents = of(RejectedKind::OtherContents),
        malformed = of(RejectedKind::Malformed),
        "requests rejected; the level debug logs each of them"
    );
}

/// Decides when a line is due.
#[derive(Debug, Default)]
struct RejectedMinutes {
    shown: [u64; KINDS],
    last: Option<Instant>,
}

impl RejectedMinutes {
    /// The counts since the last line, if a line is due: at once for the first rejected request, and then once a minute.
    fn due(&mut self, counts: [u64; KINDS], now: Instant) -> Option<[u64; KINDS]> {
        let is_early = self.last.is_some_and(|last| now.saturating_duration_since(last) < LINE_EVERY);
        if is_early || counts == self.shown {
            return None;
        }
        let since = std::array::from_fn(|kind| counts[kind].wrapping_sub(self.shown[kind]));
        (self.shown, self.last) = (counts, Some(now));
        Some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_minute_counts_what_came_since_the_line_before() {
        let (mut minutes, start) = (RejectedMinutes::default(), clock::monotonic());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(minutes.due([0; KINDS], at(0)), None, "nothing was rejected");
        assert_eq!(minutes.due([2, 0, 0, 1, 0, 0, 0], at(1)), Some([2, 0, 0, 1, 0, 0, 0]));
        assert_eq!(minutes.due([9, 0, 0, 1, 0, 0, 0], at(60)), None, "within the minute");
        assert_eq!(minutes.due([9, 0, 0, 1, 0, 4, 0], at(61)), Some([7, 0, 0, 0, 0, 4, 0]));
        assert_eq!(minutes.due([9, 0, 0, 1, 0, 4, 0], at(200)), None, "nothing came since");
    }
}
