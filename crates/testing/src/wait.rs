//! Waits for conditions by polling, instead of fixed sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::AbortHandle;

const POLL: Duration = Duration::from_millis(5);

/// Timeout for anything that must happen. It is so long that only broken code reaches it, on any machine.
pub const SOON: Duration = Duration::from_secs(60);

/// Polls `condition` until it holds; panics with `what` when it does not within `timeout`.
#[track_caller]
pub fn eventually(timeout: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    eventually_some(timeout, what, || condition().then_some(()));
}

/// Polls `find` until it returns `Some`; panics with `what` when it does not within `timeout`.
#[track_caller]
pub fn eventually_some<T>(timeout: Duration, what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        give_up_after(timeout, what, started);
        std::thread::sleep(POLL);
    }
}

/// [`eventually`] for a condition that must be awaited; lets the runtime's other tasks run meanwhile.
pub async fn eventually_async(timeout: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !condition().await {
        give_up_after(timeout, what, started);
        tokio::time::sleep(POLL).await;
    }
}

#[track_caller]
fn give_up_after(timeout: Duration, what: &str, started: Instant) {
    let waited = started.elapsed();
    assert!(waited < timeout, "not within {timeout:?}: {what} (waited {waited:?})");
}

/// A stopwatch of the time that this thread's runtime has run. Time while the thread is not scheduled or blocks does
/// not count. It measures how long the code under test waits.
pub struct Stopwatch {
    seen: Arc<Mutex<SeenLines>>,
    ticker: AbortHandle,
}

struct SeenLines {
    last: Instant,
    ran: Duration,
}

impl Stopwatch {
    /// Starts one on the current runtime, which must have one thread.
    pub fn start() -> Self {
        let seen = Arc::new(Mutex::new(SeenLines { last: Instant::now(), ran: Duration::ZERO }));
        let ticked = Arc::clone(&seen);
        let ticker = tokio::spawn(async move {
            loop {
                tokio::time::sleep(POLL).await;
                ticked.lock().poll();
            }
        });
        Self { seen, ticker: ticker.abort_handle() }
    }

    /// Returns the running time since the start.
    pub fn elapsed(&self) -> Duration {
        self.seen.lock().poll()
    }

    /// Runs `work`, and returns its result and its duration.
    pub async fn time<T>(&self, work: impl Future<Output = T>) -> (T, Duration) {
        let before = self.elapsed();
        let done = work.await;
        (done, self.elapsed() - before)
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        self.ticker.abort();
    }
}

impl SeenLines {
    /// Polls. A thread that runs does so every few milliseconds.
    fn poll(&mut self) -> Duration {
        let gap = self.last.elapsed();
        self.last += gap;
        self.ran += gap.min(POLL * 2);
        self.ran
    }
}
