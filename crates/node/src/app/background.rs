//! The background thread: the store's monitor, the sweep of the memory store, the file watcher.
//!
//! It has a thread of its own, so that neither a scrape of the admin port nor a busy worker delays a probe.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

/// Runs until it is dropped.
pub(super) struct BackgroundThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundThread {
    /// Starts the thread, which runs `work`.
    pub(super) fn start(work: impl Future<Output = ()> + Send + 'static) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let body = move || {
            runtime.block_on(async {
                // A task of its own: a panic in it ends the work, not the thread, and the panic hook has logged it.
                tokio::spawn(work);
                let _ = stopped.await;
            });
        };
        let thread = std::thread::Builder::new().name("weir-background".to_owned()).spawn(body)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        // Dropping the sender ends the thread's wait.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
