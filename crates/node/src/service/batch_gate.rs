//! The batches of one worker that wait for a store which answers later.
//!
//! ```text
//!   batches of a caller      in line: each puts all its questions before the next one begins
//!   first of each line       by turns: a piece at a time, while the store has room
//!   batches out of time      in a second line of their caller, for the failure policy: a piece of one of them at a time
//! ```
//!
//! A batch that waits has asked the store nothing, so it costs no more than its message, and nothing expires. So many
//! batches in flight decide as much as few do, and a caller with many has the room of one. A batch waits until its caller's
//! deadline; without one, as long as a decision does. What it has not asked by then is left to the failure policy. These
//! answers are many and come at once, so they have turns of their own (`batch_late.rs`): otherwise a flood of them would
//! delay what is decided.
//!
//! The messages of batches are in the budget of buffered bytes. A quarter of it is left to others: one caller's batches do
//! not refuse another caller's calls.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use weir_grpc::{BufferBudget, HeldBytes, no_space};

use super::batch_late::LateTurns;

/// Questions of batches that may wait for answers of the store: twice what a link has in flight, so that it always finds
/// the next ones.
const ROOM: usize = 1024;

/// Lines that may be kept after their batches, before they are removed.
const KEPT_LINES: usize = 64;

/// The room for questions, and the lines of callers.
pub(super) struct BatchGate {
    room: Arc<Semaphore>,
    lines: Mutex<CallerLines>,
    /// The turns of batches out of time.
    pub(super) late: LateTurns,
    /// The budget of buffered bytes; `None` counts nothing.
    budget: Option<BufferBudget>,
}

/// The lines of one caller. The batch at the head of each has its permit.
pub(super) struct BatchLine {
    pub(super) asking: Arc<Semaphore>,
    pub(super) late: Arc<Semaphore>,
}

#[derive(Default)]
struct CallerLines {
    lines: HashMap<u32, Weak<BatchLine>, foldhash::fast::RandomState>,
    /// With so many, those without batches are removed.
    crowded: usize,
}

impl BatchGate {
    /// Creates the gate of a worker, whose batches are counted in `budget`.
    pub(super) fn new(budget: Option<BufferBudget>) -> Self {
        let (room, lines) = (Arc::new(Semaphore::new(ROOM)), Mutex::default());
        Self { room, lines, late: LateTurns::new(), budget }
    }

    /// Counts the message of a batch, or refuses it if there are too many bytes already. The first batch of a line is
    /// never refused, so a caller without batches is not refused for those of others.
    pub(super) fn hold(&self, line: &BatchLine, bytes: usize) -> Result<Option<HeldBytes>, Status> {
        if line.asking.available_permits() > 0 {
            return Ok(self.hold_first(bytes));
        }
        let Some(budget) = &self.budget else { return Ok(None) };
        let others = budget.limit() / 4;
        budget.hold_beside(bytes, others).map(Some).ok_or_else(no_space)
    }

    /// Counts the message of a batch that is the first of its line.
    pub(super) fn hold_first(&self, bytes: usize) -> Option<HeldBytes> {
        Some(self.budget.as_ref()?.hold_anyway(bytes))
    }

    pub(super) fn line(&self, caller: u32) -> Arc<BatchLine> {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.lines.get(&caller).and_then(Weak::upgrade) {
            return line;
        }
        if lines.lines.len() >= lines.crowded {
            lines.lines.retain(|_, line| line.strong_count() > 0);
            lines.crowded = 2 * lines.lines.len() + KEPT_LINES;
        }
        let (asking, late) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
        let line = Arc::new(BatchLine { asking, late });
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

    /// True while questions of batches wait for answers of the store.
    pub(super) fn store_has_work(&self) -> bool {
        self.room.available_permits() < ROOM
    }
}

#[cfg(test)]
mod tests {
    use weir_store::at_once;

    use super::*;

    /// The first batch of a caller's line, which keeps the line.
    fn first_of(gate: &BatchGate, caller: u32) -> Option<(Arc<BatchLine>, OwnedSemaphorePermit)> {
        let line = gate.line(caller);
        let place = Arc::clone(&line.asking).try_acquire_owned().ok()?;
        Some((line, place))
    }

    #[test]
    fn lines_are_kept_while_they_have_batches() {
        let gate = BatchGate::new(None);
        let first = first_of(&gate, 1).unwrap();
        assert!(first_of(&gate, 1).is_none(), "the next batch waits");
        assert!(first_of(&gate, 2).is_some(), "that of another caller does not");
        for caller in 3..10_000 {
            gate.line(caller);
            assert!(gate.lines.lock().lines.len() <= 2 * KEPT_LINES);
        }
        assert!(first_of(&gate, 1).is_none());
        drop(first);
        assert!(first_of(&gate, 1).is_some());
    }

    #[test]
    fn room_is_given_in_the_order_of_asking() {
        let gate = BatchGate::new(None);
        let mut taken: Vec<_> = (0..ROOM / 32).map(|_| at_once(gate.room(32)).unwrap()).collect();
        assert!(at_once(gate.room(1)).is_none() && gate.free_room(1).is_none());
        taken.pop();
        assert!(at_once(gate.room(32)).is_some());
    }
}
