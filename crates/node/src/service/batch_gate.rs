//! The batches of one worker that wait for a store which answers later.
//!
//! ```text
//!   batches of a caller      in line: each puts all its questions before the next one begins
//!   first of each line       by turns: a piece at a time, while the store has room
//! ```
//!
//! A batch that waits has asked the store nothing, so it costs no more than its message, and nothing expires. So many
//! batches in flight decide as much as few do, and a caller with many has the room of one.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Questions of batches that may wait for answers of the store: twice what a link has in flight, so that it always finds
/// the next ones.
const ROOM: usize = 1024;

/// Lines that may be kept after their batches, before they are removed.
const KEPT_LINES: usize = 64;

/// The room for questions, and the lines of callers.
pub(super) struct BatchGate {
    room: Arc<Semaphore>,
    lines: Mutex<CallerLines>,
}

/// The line of each caller with batches: the batch at its head has the permit.
#[derive(Default)]
struct CallerLines {
    lines: HashMap<u32, Weak<Semaphore>, foldhash::fast::RandomState>,
    /// With so many, those without batches are removed.
    crowded: usize,
}

impl Default for BatchGate {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(ROOM)), lines: Mutex::default() }
    }
}

impl BatchGate {
    /// The line of a caller.
    pub(super) fn line(&self, caller: u32) -> Arc<Semaphore> {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.lines.get(&caller).and_then(Weak::upgrade) {
            return line;
        }
        if lines.lines.len() >= lines.crowded {
            lines.lines.retain(|_, line| line.strong_count() > 0);
            lines.crowded = 2 * lines.lines.len() + KEPT_LINES;
        }
        let line = Arc::new(Semaphore::new(1));
        lines.lines.insert(caller, Arc::downgrade(&line));
        line
    }

    /// The room of so many questions, if it is there and nobody waits for it.
    pub(super) fn free_room(&self, questions: usize) -> Option<OwnedSemaphorePermit> {
        let questions = u32::try_from(questions.min(ROOM)).unwrap_or(u32::MAX);
        Arc::clone(&self.room).try_acquire_many_owned(questions).ok()
    }

    /// Waits for the room of so many questions. Who has waited longest is next.
    pub(super) async fn room(&self, questions: usize) -> Option<OwnedSemaphorePermit> {
        let questions = u32::try_from(questions.min(ROOM)).unwrap_or(u32::MAX);
        // It is never closed.
        Arc::clone(&self.room).acquire_many_owned(questions).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use weir_store::at_once;

    use super::*;

    #[test]
    fn lines_are_kept_while_they_have_batches() {
        let gate = BatchGate::default();
        let first = gate.line(1).try_acquire_owned().unwrap();
        assert!(gate.line(1).try_acquire_owned().is_err(), "the next batch waits");
        assert!(gate.line(2).try_acquire_owned().is_ok(), "that of another caller does not");
        for caller in 3..10_000 {
            gate.line(caller);
            assert!(gate.lines.lock().lines.len() <= 2 * KEPT_LINES);
        }
        assert!(gate.line(1).try_acquire_owned().is_err());
        drop(first);
        assert!(gate.line(1).try_acquire_owned().is_ok());
    }

    #[test]
    fn room_is_given_in_the_order_of_asking() {
        let gate = BatchGate::default();
        let mut taken: Vec<_> = (0..ROOM / 32).map(|_| at_once(gate.room(32)).unwrap()).collect();
        assert!(at_once(gate.room(1)).is_none() && gate.free_room(1).is_none());
        taken.pop();
        assert!(at_once(gate.room(32)).is_some());
    }
}
