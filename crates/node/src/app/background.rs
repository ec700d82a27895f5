//! Threads in the background: one for the store's monitor, the sweep of the memory store and the file watcher, and those of
//! features.
//!
//! They are threads of their own, so that neither a scrape of the admin port nor a busy worker delays a probe.

use std::io;
use std::time::Duration;

use crate::owned_thread::OwnedThread;

/// Starts a thread that runs `work`, and `last` when it is dropped: for so long at most.
pub fn start_background(
    name: &'static str,
    work: impl Future<Output = ()> + Send + 'static,
    last: (impl Future<Output = ()> + Send + 'static, Duration),
) -> io::Result<OwnedThread> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    OwnedThread::spawn(name, move |stopped| {
        runtime.block_on(async {
            // A task of its own: a panic in it ends the work, not the thread, and the panic hook has logged it.
            tokio::spawn(work);
            let _ = stopped.await;
            let (last, within) = last;
            let _ = tokio::time::timeout(within, last).await;
        });
    })
}
