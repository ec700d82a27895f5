//! Callers that change what they show with each version, on connections that stay and on new ones.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use weir_testing::{SOON, eventually_async};

use super::versions::{By, Shown};

/// Callers of each kind that keep their connection, and that connect for each call.
const KEPT: usize = 3;
const ANEW: usize = 1;

/// The callers, until they are stopped.
pub(super) struct Callers {
    shown: watch::Sender<(u64, Arc<Shown>)>,
    tasks: Vec<Caller>,
    stop: Arc<watch::Sender<bool>>,
}

struct Caller {
    /// The number of the change after which its last call began.
    change: Arc<AtomicU64>,
    calls: JoinHandle<u64>,
}

impl Callers {
    pub(super) fn start(to: SocketAddr, first: Arc<Shown>) -> Self {
        let shown = watch::Sender::new((0, first));
        let stop = Arc::new(watch::Sender::new(false));
        let mut tasks = Vec::new();
        for (by, keeps, count) in [
            (By::Token, true, KEPT),
            (By::Jwt, true, KEPT),
            (By::Token, false, ANEW),
            (By::Jwt, false, ANEW),
            (By::Certificate, false, ANEW),
        ] {
            for _ in 0..count {
                let change = Arc::<AtomicU64>::default();
                let calling = call(to, by, keeps, shown.subscribe(), Arc::clone(&change), stop.subscribe());
                tasks.push(Caller { change, calls: tokio::spawn(calling) });
            }
        }
        Self { shown, tasks, stop }
    }

    /// Changes what callers show, and waits until all of them have.
    pub(super) async fn change_to(&self, next: Arc<Shown>) {
        let number = self.shown.borrow().0 + 1;
        self.shown.send_replace((number, next));
        let have_changed = async || {
            let failed = self.tasks.iter().any(|task| task.calls.is_finished());
            failed || self.tasks.iter().all(|task| task.change.load(Relaxed) == number)
        };
        eventually_async(SOON, "all callers have changed", have_changed).await;
    }

    /// Stops them; a call that failed panics. Returns the number of calls.
    pub(super) async fn stop(self) -> u64 {
        self.stop.send_replace(true);
        let mut calls = 0;
        for task in self.tasks {
            calls += task.calls.await.unwrap();
        }
        calls
    }
}

/// Calls one after the other, each of which must be answered.
async fn call(
    to: SocketAddr,
    by: By,
    keeps: bool,
    shown: watch::Receiver<(u64, Arc<Shown>)>,
    change: Arc<AtomicU64>,
    stopped: watch::Receiver<bool>,
) -> u64 {
    let (mut calls, mut kept) = (0, None);
    while !*stopped.borrow() {
        let (number, shown) = shown.borrow().clone();
        let mut client = match kept.take() {
            Some(client) => client,
            None => shown.connect(to, by).await.unwrap_or_else(|error| panic!("{by:?}: {error}")),
        };
        let outcome = client.call(&shown.call(by)).await;
        assert_eq!(outcome.code, Some(0), "call {calls} by {by:?} after change {number}: {outcome:?}");
        // No later call shows anything older.
        change.store(number, Relaxed);
        kept = keeps.then_some(client);
        calls += 1;
    }
    calls
}
