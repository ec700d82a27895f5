//! The watcher of files: it looks for changes in all that this server reads again while it serves.
//!
//! There is one for the configuration, Envoy's files, certificates and credentials. It looks at intervals, and reads at
//! once when it is asked to (SIGHUP, ControlService.Reload).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::readiness::{FileKind, RefusedFiles};

/// Files that are read again when they change.
pub trait WatchedFiles: Send + 'static {
    /// The kind of the files.
    fn kind(&self) -> FileKind;

    /// Checks for a change, and applies it. Returns how the files were read, if they were. It may block.
    fn poll(&mut self) -> Option<ReloadReport>;

    /// Reads the files at once, changed or not, and applies them. Returns every mistake; then nothing was applied. It may
    /// block.
    fn reload(&mut self) -> ReloadReport;
}

/// The poll interval, where no test needs another one.
pub const POLL_EVERY: Duration = Duration::from_millis(500);

/// Requests for a reload that may wait at a time.
const MAX_WAITING: usize = 64;

/// Requests to read all files at once. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ReloadRequests(Arc<Requests>);

#[derive(Debug, Default)]
struct Requests {
    came: Notify,
    waiting: Mutex<Vec<oneshot::Sender<ReloadReport>>>,
}

/// The result of a reload: every mistake, a line each. Files with mistakes changed nothing.
pub type ReloadReport = Result<(), Vec<String>>;

impl ReloadRequests {
    /// Asks for a reload, and does not wait for it.
    pub fn request(&self) {
        self.0.came.notify_one();
    }

    /// Asks for a reload, and waits for its result; `None` if too many wait, or the server is about to end.
    pub async fn reload(&self) -> Option<ReloadReport> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.0.waiting.lock();
            waiting.retain(|sender| !sender.is_closed());
            if waiting.len() >= MAX_WAITING {
                return None;
            }
            waiting.push(sender);
        }
        self.request();
        receiver.await.ok()
    }

    async fn came(&self) {
        self.0.came.notified().await;
    }

    fn take(&self) -> Vec<oneshot::Sender<ReloadReport>> {
        std::mem::take(&mut *self.0.waiting.lock())
    }
}

/// Looks at all files for ever, on a thread that may block, and records in `refused` which of them are refused.
pub async fn watch(
    mut sources: Vec<Box<dyn WatchedFiles>>,
    every: Duration,
    requests: ReloadRequests,
    refused: RefusedFiles,
) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let asked = tokio::select! {
            biased;
            _ = ticks.tick() => None,
            () = requests.came() => Some(requests.take()),
        };
        let refused = refused.clone();
        let polled = tokio::task::spawn_blocking(move || {
            match asked {
                None => poll_all(&mut sources, &refused),
                Some(waiting) => {
                    let report = reload_all(&mut sources, &refused);
                    for sender in waiting {
                        // Who has given up gets no report.
                        let _ = sender.send(report.clone());
                    }
                }
            }
            sources
        });
        // It ends early only when the runtime does.
        let Ok(back) = polled.await else { return };
        sources = back;
    }
}

fn poll_all(sources: &mut [Box<dyn WatchedFiles>], refused: &RefusedFiles) {
    for (number, source) in sources.iter_mut().enumerate() {
        if let Some(report) = source.poll() {
            refused.read(number, source.kind(), &report);
        }
    }
}

/// Reads all files. Those with mistakes keep no other from being read.
fn reload_all(sources: &mut [Box<dyn WatchedFiles>], refused: &RefusedFiles) -> ReloadReport {
    let mut errors = Vec::new();
    for (number, source) in sources.iter_mut().enumerate() {
        let report = source.reload();
        refused.read(number, source.kind(), &report);
        errors.extend(report.err().unwrap_or_default());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts its looks and reloads; every second reload has a mistake.
    struct Counted(Arc<Mutex<(usize, usize)>>);

    impl WatchedFiles for Counted {
        fn kind(&self) -> FileKind {
            FileKind::CONFIG
        }

        fn poll(&mut self) -> Option<ReloadReport> {
            self.0.lock().0 += 1;
            None
        }

        fn reload(&mut self) -> ReloadReport {
            let mut counts = self.0.lock();
            counts.1 += 1;
            if counts.1.is_multiple_of(2) { Err(vec!["a mistake".to_owned()]) } else { Ok(()) }
        }
    }

    #[tokio::test]
    async fn a_request_is_answered_with_every_mistake() {
        let (one, other) = (Arc::<Mutex<(usize, usize)>>::default(), Arc::default());
        let sources: Vec<Box<dyn WatchedFiles>> =
            vec![Box::new(Counted(Arc::clone(&one))), Box::new(Counted(Arc::clone(&other)))];
        let (requests, refused) = (ReloadRequests::default(), RefusedFiles::default());
        let watching =
            tokio::spawn(watch(sources, Duration::from_secs(3600), requests.clone(), refused.clone()));
        assert_eq!(requests.reload().await, Some(Ok(())));
        assert!(refused.notes().is_empty());
        assert_eq!(requests.reload().await, Some(Err(vec!["a mistake".to_owned(); 2])));
        assert_eq!(refused.notes().len(), 2);
        assert_eq!(
            (one.lock().1, other.lock().1),
            (2, 2),
            "each source is asked, also after one with a mistake"
        );
        watching.abort();
    }
}
