//! The watcher of files: it looks for changes in all that this server reads again while it serves.

use std::time::Duration;

/// Files that are read again when they change.
pub trait WatchedFiles: Send + 'static {
    /// Looks for a change, and applies it. It may block.
    fn look(&mut self);
}

/// The interval of looks, where no test needs another one.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Looks at all files for ever, on a thread that may block.
pub async fn watch(mut sources: Vec<Box<dyn WatchedFiles>>, every: Duration) {
    if sources.is_empty() {
        return;
    }
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let looking = tokio::task::spawn_blocking(move || {
            for source in &mut sources {
                source.look();
            }
            sources
        });
        // It ends early only when the runtime does.
        let Ok(back) = looking.await else { return };
        sources = back;
    }
}
