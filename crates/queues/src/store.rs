//! Storage of queues: a trait of its own, with two engines as the states of rate limits have. Neither names a backend: one
//! runs scripts, the other keeps queues in this process.

mod memory;
mod scripts;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use crate::model::{QueueAnswer, QueueOp, QueuePart, QueueRule};
use weir_store::StoreError;

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

/// Handle of a queue store of any type. Clones share it.
#[derive(Clone)]
pub struct QueueHandle(Arc<dyn AnyQueueStore>);

impl QueueHandle {
    /// A handle to `store`.
    pub fn new(store: impl QueueStore) -> Self {
        Self(Arc::new(store))
    }
}

impl QueueStore for QueueHandle {
    async fn queue(&self, ask: &QueueAsk<'_>) -> Result<QueueAnswer, StoreError> {
        self.0.queue_boxed(ask).await
    }
}

/// Object-safe [`QueueStore`]. The allocation is small beside the cost of a call.
trait AnyQueueStore: Send + Sync {
    fn queue_boxed<'a>(&'a self, ask: &'a QueueAsk<'a>) -> QueueFuture<'a>;
}

type QueueFuture<'a> = Pin<Box<dyn Future<Output = Result<QueueAnswer, StoreError>> + Send + 'a>>;

impl<S: QueueStore> AnyQueueStore for S {
    fn queue_boxed<'a>(&'a self, ask: &'a QueueAsk<'a>) -> QueueFuture<'a> {
        Box::pin(self.queue(ask))
    }
}
