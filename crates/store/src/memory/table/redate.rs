//! Adjusts expiry times when the wall clock steps.
//!
//! The times inside states follow the wall clock: a state that lasts until half past ten does so regardless of steps.
//! So its expiry moves with each step. *Exception:* a state that lies further ahead of a clock that was set back than
//! it lasts. Reading it moves it back to now, so it is kept for as long as it would last from now on.
//!
//! So no state expires before its own time, and none stays for the years that a clock was ahead.

use weir_core::algorithm::State;

use super::super::time::{StoreTime, WallReading};
use super::{Expiry, ShardTable};

const SECOND: i64 = 1_000_000;

impl ShardTable {
    /// Steps of the wall clock included in the expiry times, as in [`WallReading`]s.
    #[inline]
    pub(in super::super) fn ahead(&self) -> i32 {
        self.ahead
    }

    /// Adjusts the expiry times to the steps of the wall clock since.
    pub(in super::super) fn redate(&mut self, stamp: WallReading, time: &StoreTime) {
        let stepped = i64::from(stamp.ahead) - i64::from(self.ahead);
        let now = time.micros(stamp.now, stamp.ahead);
        for slot in (0..self.cells()).map(super::slot_of_cell) {
            let Some((begins, times)) = self.get(slot).and_then(State::begins) else { continue };
            let begins = time.micros(begins, stamp.ahead);
            let expiry = self.expiry(slot).moved(stepped, begins, times, now);
            *self.expiry_mut(slot) = expiry;
        }
        self.ahead = stamp.ahead;
    }
}

impl Expiry {
    /// The expiry, in whole seconds of table time, of a state that begins at `begins`, after a step of so many seconds.
    /// `begins` and `now` are microseconds of table time after the step.
    fn moved(self, stepped: i64, begins: i64, times: u64, now: i64) -> Self {
        let Ok(before) = i64::try_from(self.at()) else { return self };
        let own = before.saturating_sub(stepped).saturating_mul(SECOND);
        let lasts = own.saturating_sub(begins);
        if lasts < 0 {
            // An earlier step moved it back by more than it lasts, and it was not read since.
            return self;
        }
        let most = lasts.saturating_mul(i64::try_from(times).unwrap_or(i64::MAX));
        let expires = if begins.saturating_sub(now) > most { now.saturating_add(most) } else { own };
        let second = expires.max(0).cast_unsigned().div_ceil(SECOND.cast_unsigned());
        Self::new(second, self.exhausted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR: i64 = 365 * 86_400;

    /// A state that began at second 100 and lasts for 50, seen at second 120 of table time, before and after a step.
    #[test]
    fn an_expiry_moves_with_the_clock_and_by_no_more_than_the_state_lasts() {
        for (stepped, expected) in [
            (0, 150),
            (-1, 151),
            (-30, 180),
            // It is 70 ahead of the clock after 90, and 50 is what it lasts.
            (-70, 220),
            (-71, 170),
            (-3600, 170),
            (-10 * YEAR, 170),
            (1, 149),
            (30, 120),
            (3600, 0),
            (10 * YEAR, 0),
        ] {
            let begins = (100 - stepped) * SECOND;
            let moved = Expiry::new(150, true).moved(stepped, begins, 1, 120 * SECOND);
            assert!(moved == Expiry::new(expected, true), "{stepped}: {}", moved.at());
        }
    }

    /// Each time at most what has passed since the state began, here 20 seconds.
    #[test]
    fn a_clock_that_goes_to_and_fro_adds_little() {
        for step in [1, 70, 71, 3600, 10 * YEAR] {
            let (mut expiry, mut begins) = (Expiry::new(150, false), 100);
            for round in 0..10 {
                for stepped in [-step, step] {
                    begins -= stepped;
                    expiry = expiry.moved(stepped, begins * SECOND, 1, 120 * SECOND);
                }
                let most = 150 + 20 * (round + 1);
                assert!((150..=most).contains(&expiry.at()), "{step}, round {round}: {}", expiry.at());
            }
        }
    }

    #[test]
    fn what_never_expires_does_not_move() {
        let forever = Expiry::new(u64::MAX, false);
        assert!(forever.moved(-3600, 0, 1, 0) == forever);
    }
}
