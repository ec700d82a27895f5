//! Threads that end with their owner.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

/// A thread that is stopped and joined when this is dropped.
pub struct OwnedThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl OwnedThread {
    /// Starts the thread. What `body` gets resolves when the thread must end.
    pub fn spawn(name: &str, body: impl FnOnce(oneshot::Receiver<()>) + Send + 'static) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || body(stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for OwnedThread {
    fn drop(&mut self) {
        // Dropping the sender ends the thread's wait.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
