//! Waiting for something that becomes true, instead of sleeping and hoping.

use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);

/// Polls `condition` until it holds; panics with `what` when it does not within `timeout`.
#[track_caller]
pub(crate) fn eventually(timeout: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    eventually_some(timeout, what, || condition().then_some(()));
}

/// Polls `find` until it gives something; panics with `what` when it does not within `timeout`.
#[track_caller]
pub(crate) fn eventually_some<T>(timeout: Duration, what: &str, mut find: impl FnMut() -> Option<T>) -> T {
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
pub(crate) async fn eventually_async(
    timeout: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> bool,
) {
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
