//! The time between attempts to connect: it doubles, and is random by a half.

use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};

/// The time before the next attempt.
#[derive(Debug)]
pub(super) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) const fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, next: min }
    }

    /// Begins anew: an attempt has succeeded.
    pub(super) const fn reset(&mut self) {
        self.next = self.min;
    }

    /// Returns the time to wait now, and doubles the next one.
    pub(super) fn next(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.max);
        let mut byte = [0_u8];
        // Without randomness all nodes come back at once, which is no fault.
        let _ = SystemRandom::new().fill(&mut byte);
        whole / 2 + whole / 2 * u32::from(byte[0]) / 255
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_its_bound() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(6));
        for whole in [1, 2, 4, 6, 6] {
            let wait = backoff.next();
            let whole = Duration::from_secs(whole);
            assert!(wait >= whole / 2 && wait <= whole, "{wait:?} of {whole:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= Duration::from_secs(1));
    }
}
