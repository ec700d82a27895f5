//! Time for which a subscription continues after its worker has closed its side.
//!
//! The worker can no longer add credit, and may be gone: gRPC does not distinguish a worker that only stops sending
//! from one that stops reading. Items that are sent to a lost worker are delivered again after the visibility.

use std::time::{Duration, Instant};

use weir_units::Micros;

use crate::calls::MAX_WAIT;

/// Time at which the worker closed its side.
#[derive(Debug, Default)]
pub(super) struct HalfClose(Option<Instant>);

impl HalfClose {
    /// Notes that the worker has closed its side.
    pub(super) fn closed(&mut self, now: Instant) {
        self.0.get_or_insert(now);
    }

    /// The longest wait of a take that begins now; `None` once the subscription is over.
    pub(super) fn wait(&self, now: Instant) -> Option<Micros> {
        let Some(closed) = self.0 else { return Some(MAX_WAIT) };
        let left = Duration::from(MAX_WAIT).checked_sub(now.saturating_duration_since(closed))?;
        let left = Micros(u64::try_from(left.as_micros()).ok()?);
        (left > Micros::ZERO).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_time::clock;

    #[test]
    fn what_remains_is_served_for_five_minutes() {
        let begin = clock::monotonic();
        let mut half_close = HalfClose::default();
        assert_eq!(half_close.wait(begin + Duration::from_secs(86_400)), Some(MAX_WAIT), "it is open");
        half_close.closed(begin);
        half_close.closed(begin + Duration::from_secs(100));
        assert_eq!(half_close.wait(begin), Some(MAX_WAIT));
        assert_eq!(half_close.wait(begin + Duration::from_secs(299)), Some(Micros::from_secs(1)));
        assert_eq!(half_close.wait(begin + Duration::from_secs(300)), None);
    }
}
