//! Queues in this process. They live as long as the process, are never evicted, and are outside of the budget: each
//! is bounded by its own settings.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{BoundedQueue, QueueAnswer, QueueTime};
use parking_lot::Mutex;
use weir_store::StoreError;
use weir_store::backend::ProcessClock;

use crate::store::{QueueAsk, QueueStore};

/// The queues of this process. Clones share them.
#[derive(Clone)]
pub struct ProcessQueues {
    table: Arc<QueueTable>,
    clock: ProcessClock,
}

/// All configured queues by name.
#[derive(Default)]
struct QueueTable(Mutex<HashMap<Box<str>, Arc<Mutex<BoundedQueue>>>>);

impl QueueStore for ProcessQueues {
    async fn queue(&self, ask: &QueueAsk<'_>) -> Result<QueueAnswer, StoreError> {
        Ok(self.answer(ask))
    }
}

impl ProcessQueues {
    /// Creates queues without items, by these clocks.
    #[must_use]
    pub fn new(clock: ProcessClock) -> Self {
        Self { table: Arc::default(), clock }
    }

    fn answer(&self, ask: &QueueAsk<'_>) -> QueueAnswer {
        let queue = self.table.get(ask.rule.name());
        let mut queue = queue.lock();
        let now = QueueTime { steady: self.clock.steady(), wall: self.clock.wall() };
        queue.call(ask.rule.numbers(), ask.part, &ask.op, now)
    }
}

impl QueueTable {
    fn get(&self, name: &str) -> Arc<Mutex<BoundedQueue>> {
        let mut queues = self.0.lock();
        if let Some(queue) = queues.get(name) {
            return Arc::clone(queue);
        }
        Arc::clone(queues.entry(name.into()).or_default())
    }
}
