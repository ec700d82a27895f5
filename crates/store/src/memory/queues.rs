//! Queues in this process. They live as long as the process, are never evicted, and are outside of the budget: each
//! is bounded by its own settings.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{MemoryStore, SharedMemory};
use crate::StoreError;
use crate::queue::{QueueAsk, QueueStore};
use weir_core::queue::{BoundedQueue, QueueAnswer, QueueTime};

/// All queues by name; as many as are configured.
#[derive(Default)]
pub(super) struct QueueTable(Mutex<HashMap<Box<str>, Arc<Mutex<BoundedQueue>>>>);

impl QueueStore for MemoryStore {
    async fn queue(&self, ask: &QueueAsk<'_>) -> Result<QueueAnswer, StoreError> {
        Ok(self.0.queue(ask))
    }
}

impl SharedMemory {
    fn queue(&self, ask: &QueueAsk<'_>) -> QueueAnswer {
        let queue = self.queues.of(ask.rule.name());
        let mut queue = queue.lock();
        let now = QueueTime { steady: self.time.steady(), wall: self.time.stamp().now };
        queue.call(ask.rule.numbers(), ask.part, &ask.op, now)
    }
}

impl QueueTable {
    fn of(&self, name: &str) -> Arc<Mutex<BoundedQueue>> {
        let mut queues = self.0.lock();
        if let Some(queue) = queues.get(name) {
            return Arc::clone(queue);
        }
        Arc::clone(queues.entry(name.into()).or_default())
    }
}
