//! A worker's share of time for handshakes: at most a fifth, and calls come first.
//!
//! Handshakes take turns. A turn is one step: the cryptography for the bytes that have arrived, some hundred
//! microseconds. Before each, the connections that are ready are polled, and sockets are read. Turns go to handshakes
//! that have begun, then to clients with few of them, so a crowd at one address delays mostly itself.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::yield_now;
use weir_time::clock::monotonic;

const PART: u32 = 5;

/// Time that a worker without handshakes saves up for later ones.
const SAVED: Duration = Duration::from_millis(5);

/// The turns of one worker.
pub struct HandshakeShare(Mutex<Turns>);

struct Turns {
    allowance: Allowance,
    is_taken: bool,
    waiting: Vec<WaitingHandshake>,
    next: u64,
}

struct WaitingHandshake {
    rank: TurnRank,
    waker: Option<Waker>,
}

/// The order of turns: the lowest is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TurnRank {
    is_first_step: bool,
    of_source: usize,
    number: u64,
}

/// Time that may be spent on handshakes now.
struct Allowance {
    saved: Duration,
    /// Time that was spent too much.
    owed: Duration,
    at: Instant,
}

/// A wait for a turn, and the turn itself. It ends when this is dropped.
struct Turn<'s> {
    share: &'s HandshakeShare,
    rank: TurnRank,
    has_begun: bool,
}

impl HandshakeShare {
    /// Creates the share of a worker.
    pub fn new() -> Arc<Self> {
        let allowance = Allowance { saved: SAVED, owed: Duration::ZERO, at: monotonic() };
        Arc::new(Self(Mutex::new(Turns { allowance, is_taken: false, waiting: Vec::new(), next: 0 })))
    }

    /// Drives a handshake of a client that has `of_source` of them, a step per turn.
    pub(super) async fn drive<F: Future>(&self, of_source: usize, handshake: F) -> F::Output {
        let mut handshake = pin!(handshake);
        let mut is_first_step = true;
        loop {
            let turn = self.turn(is_first_step, of_source).await;
            let begin = monotonic();
            let polled = poll_once(handshake.as_mut()).await;
            turn.spent(monotonic().saturating_duration_since(begin));
            drop(turn);
            if let Poll::Ready(output) = polled {
                return output;
            }
            is_first_step = false;
            woken().await;
        }
    }

    async fn turn(&self, is_first_step: bool, of_source: usize) -> Turn<'_> {
        let mut turn = Turn::wait(self, is_first_step, of_source);
        poll_fn(|context| turn.poll_begin(context.waker())).await;
        // Calls that are ready, and sockets that have become readable, come first.
        yield_now().await;
        loop {
            let wait = self.0.lock().allowance.wait(monotonic());
            if wait.is_zero() {
                return turn;
            }
            tokio::time::sleep(wait).await;
        }
    }
}

impl<'s> Turn<'s> {
    fn wait(share: &'s HandshakeShare, is_first_step: bool, of_source: usize) -> Self {
        let mut turns = share.0.lock();
        turns.next += 1;
        let rank = TurnRank { is_first_step, of_source, number: turns.next };
        turns.waiting.push(WaitingHandshake { rank, waker: None });
        Turn { share, rank, has_begun: false }
    }

    fn poll_begin(&mut self, waker: &Waker) -> Poll<()> {
        let mut turns = self.share.0.lock();
        let next = turns.waiting.iter().map(|waiting| waiting.rank).min();
        if !turns.is_taken && next == Some(self.rank) {
            turns.is_taken = true;
            turns.waiting.retain(|waiting| waiting.rank != self.rank);
            self.has_begun = true;
            return Poll::Ready(());
        }
        if let Some(own) = turns.waiting.iter_mut().find(|waiting| waiting.rank == self.rank) {
            own.waker = Some(waker.clone());
        }
        Poll::Pending
    }

    fn spent(&self, time: Duration) {
        self.share.0.lock().allowance.spend(time);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.share.0.lock();
        if self.has_begun {
            turns.is_taken = false;
        } else {
            turns.waiting.retain(|waiting| waiting.rank != self.rank);
        }
        if !turns.is_taken
            && let Some(next) = turns.waiting.iter().min_by_key(|waiting| waiting.rank)
            && let Some(waker) = next.waker.clone()
        {
            drop(turns);
            waker.wake();
        }
    }
}

impl Allowance {
    /// Returns how long to wait before the next step.
    fn wait(&mut self, now: Instant) -> Duration {
        let earned = now.saturating_duration_since(self.at) / PART;
        self.at = now;
        let paid = earned.min(self.owed);
        self.owed -= paid;
        self.saved = (self.saved + (earned - paid)).min(SAVED);
        if self.owed.is_zero() { Duration::ZERO } else { self.owed * PART }
    }

    fn spend(&mut self, time: Duration) {
        let saved = self.saved.min(time);
        self.saved -= saved;
        self.owed += time - saved;
    }
}

/// Polls once, with the waker of the task.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// Waits until the task is woken. What was polled before has its waker.
async fn woken() {
    let mut is_woken = false;
    poll_fn(|_| if std::mem::replace(&mut is_woken, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn handshakes_get_a_fifth_of_the_time() {
        let start = monotonic();
        let mut allowance = Allowance { saved: SAVED, owed: Duration::ZERO, at: start };
        let (mut now, mut spent) = (start, Duration::ZERO);
        while now < start + 1000 * MS {
            let wait = allowance.wait(now);
            now += wait;
            if wait.is_zero() {
                allowance.spend(MS);
                spent += MS;
                now += MS;
            }
        }
        assert!(spent >= 195 * MS && spent <= 200 * MS + SAVED + MS, "{spent:?}");
        // A long rest saves no more than a little.
        allowance.wait(now + 3600 * 1000 * MS);
        assert_eq!((allowance.saved, allowance.owed), (SAVED, Duration::ZERO));
    }

    /// Order of turns: handshakes that have begun, then sources with few of them, then first come, first served.
    #[test]
    fn a_crowd_delays_mostly_itself() {
        let share = HandshakeShare::new();
        let mut crowd: Vec<Turn<'_>> = (1..=5).map(|count| Turn::wait(&share, true, count)).collect();
        let mut lonely = Turn::wait(&share, true, 1);
        let mut begun = Turn::wait(&share, false, 9);
        let waker = Waker::noop();
        assert!(crowd[0].poll_begin(waker).is_pending() && lonely.poll_begin(waker).is_pending());
        assert!(begun.poll_begin(waker).is_ready());
        // One at a time.
        assert!(crowd[0].poll_begin(waker).is_pending());
        drop(begun);
        assert!(crowd[0].poll_begin(waker).is_ready());
        drop(crowd.remove(0));
        assert!(crowd[0].poll_begin(waker).is_pending());
        assert!(lonely.poll_begin(waker).is_ready());
        drop(lonely);
        assert!(crowd[0].poll_begin(waker).is_ready());
    }
}
