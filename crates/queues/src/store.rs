//! Storage of queues: a trait with two engines, as the states of rate limits have. Neither names a backend: one runs
//! scripts, the other keeps queues in this process.

mod memory;
mod scripts;

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use crate::model::{QueueAnswer, QueueOp, QueuePart, QueueRule};
use weir_store::StoreError;
use weir_store::scripts::AskScripts;

pub use self::memory::ProcessQueues;
pub use self::scripts::{QUEUES, QUEUES_THAT_DROP};

/// A call about a queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueAsk<'a> {
    /// The queue.
    pub rule: &'a QueueRule,
    /// The queue itself, or its dead letters.
    pub part: QueuePart,
    /// Operation.
    pub op: QueueOp<'a>,
    /// The caller's deadline.
    pub deadline: Option<Instant>,
}

/// Storage of queues. Each call is atomic.
pub trait QueueStore: Send + Sync + 'static {
    /// Performs an operation on a queue.
    ///
    /// After [`StoreError::Timeout`] the operation may have happened once, with its answer lost. Items that are put
    /// under ids are then accepted once; items that were handed out are delivered again when their time is over.
    fn queue(&self, ask: &QueueAsk<'_>) -> impl Future<Output = Result<QueueAnswer, StoreError>> + Send;
}

/// Access of a worker to the queues. Clones share it.
#[derive(Clone)]
pub enum QueueHandle {
    /// Queues over scripts.
    Scripts(Arc<dyn AskScripts>),
    /// Queues in this process.
    Process(ProcessQueues),
}

impl QueueStore for QueueHandle {
    async fn queue(&self, ask: &QueueAsk<'_>) -> Result<QueueAnswer, StoreError> {
        match self {
            Self::Scripts(scripts) => scripts.queue(ask).await,
            Self::Process(queues) => queues.queue(ask).await,
        }
    }
}
