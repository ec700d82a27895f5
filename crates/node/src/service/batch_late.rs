//! Turns of batches out of time: a tenth of the worker's time while the store has work.
//!
//! ```text
//!   the store has work     a piece that took t is followed by a pause of nine t
//!   it has none            a piece after the other
//!   a batch must answer    its pieces wait for no share: its caller's deadline ends, or it has waited for five seconds
//! ```
//!
//! Who gets the failure policy's answers asks again. Without a share, these answers are all that a worker does, and the
//! store waits for it. With one, a caller that asks more than is decided waits for its late answers meanwhile.

use std::future::pending;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;

/// Time for which a batch waits for its share of the worker's time. With 512 batches of 1,000 in flight, a bound of one
/// second alone would take half of a worker.
pub(super) const LONGEST: Duration = Duration::from_secs(5);

/// A piece has this part of the time.
const PART: u32 = 10;

/// A piece that took longer was not run meanwhile.
const MOST_TIME: Duration = Duration::from_millis(1);

/// Time without pieces that counts for the next ones: timers are late by as much.
const SPARED: Duration = Duration::from_millis(2);

/// The turns of batches out of time, of one worker.
pub(super) struct LateTurns {
    /// The turn of a batch that waits for its share.
    sparing: Semaphore,
    /// The turn of a batch that must answer.
    due: Semaphore,
    share: Mutex<LateShare>,
}

/// Time at which the next piece may begin.
#[derive(Debug, Clone, Copy)]
struct LateShare(Instant);

/// The turn of a batch. Its time counts until it is dropped, if it waited for the share.
pub(super) struct LateTurn<'a> {
    share: Option<&'a Mutex<LateShare>>,
    began: Instant,
    // The next turn begins after the time is counted.
    _permit: Option<SemaphorePermit<'a>>,
}

impl LateTurns {
    pub(super) fn new() -> Self {
        let share = Mutex::new(LateShare(monotonic()));
        Self { sparing: Semaphore::new(1), due: Semaphore::new(1), share }
    }

    /// Waits for the turn of a batch, within the share of the worker's time while the store `has_work`.
    pub(super) async fn spared(&self, deadlines: &Deadlines, has_work: impl Fn() -> bool) -> LateTurn<'_> {
        // It is never closed.
        let permit = self.sparing.acquire().await.ok();
        loop {
            let LateShare(next) = *self.share.lock();
            if next <= monotonic() || !has_work() {
                return LateTurn { share: Some(&self.share), began: monotonic(), _permit: permit };
            }
            // Nothing comes before.
            let _ = deadlines.until(next, pending::<()>()).await;
        }
    }

    /// Waits for the turn of a batch that must answer.
    pub(super) async fn due(&self) -> LateTurn<'_> {
        LateTurn { share: None, began: monotonic(), _permit: self.due.acquire().await.ok() }
    }
}

impl LateShare {
    fn spend(&mut self, began: Instant, took: Duration) {
        let spared = began.checked_sub(SPARED).unwrap_or(began);
        self.0 = self.0.max(spared) + took.min(MOST_TIME) * PART;
    }
}

impl Drop for LateTurn<'_> {
    fn drop(&mut self) {
        let Some(share) = self.share else { return };
        let took = monotonic().saturating_duration_since(self.began);
        share.lock().spend(self.began, took);
    }
}

#[cfg(test)]
mod tests {
    use weir_store::at_once;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn late_answers_have_a_tenth_of_the_time() {
        let begun = monotonic();
        let (mut share, mut now, mut spent) = (LateShare(begun), begun, Duration::ZERO);
        while spent < 100 * MS {
            now = now.max(share.0);
            share.spend(now, MS / 4);
            now += MS / 4;
            spent += MS / 4;
        }
        let all = (share.0 - begun).as_millis();
        assert_eq!(all, 1_000, "of {all} ms");
        let later = share.0 + 3600 * 1000 * MS;
        share.spend(later, MS);
        assert_eq!(share.0, later + 8 * MS, "an hour without them gives no more than 2 ms");
        share.spend(later, 500 * MS);
        assert_eq!(share.0, later + 18 * MS, "the process did not run");
    }

    /// The second batch of the first caller gives up, so the one behind it is next.
    #[tokio::test(start_paused = true)]
    async fn a_batch_waits_for_its_share_in_the_order_of_asking_while_the_store_has_work() {
        let (turns, deadlines) = (LateTurns::new(), Deadlines::default());
        let asked = monotonic();
        let first = turns.spared(&deadlines, || true).await;
        tokio::time::advance(MS).await;
        let mut given_up = Box::pin(turns.spared(&deadlines, || true));
        assert!(at_once(given_up.as_mut()).is_none(), "one at a time");
        let due = at_once(turns.due());
        assert!(due.is_some(), "who must answer waits for nobody's share");
        drop((given_up, due, first));
        let second = turns.spared(&deadlines, || true).await;
        let waited = monotonic() - asked;
        assert!((10 * MS..=14 * MS).contains(&waited), "{waited:?}: ten times 1 ms, and a late timer");
        tokio::time::advance(MS).await;
        drop(second);
        assert!(at_once(turns.spared(&deadlines, || true)).is_none());
        assert!(at_once(turns.spared(&deadlines, || false)).is_some(), "the store has nothing to do");
    }
}
