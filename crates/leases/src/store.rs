//! Storage of leases: a trait with two engines: scripts, and this process.

mod memory;
mod scripts;

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use weir_core::key::{self, Subject};
use weir_core::strategy::{ConcurrencyRule, ControllerRule, Partition, Strategy};
use weir_store::StoreError;
use weir_store::scripts::AskScripts;

pub use self::memory::ProcessLeases;
pub use self::scripts::LEASES;
use crate::model::{LeaseAnswer, LeaseCursor, LeaseOp, LeasePage};

/// A call about a lease.
#[derive(Debug, Clone, Copy)]
pub struct LeaseAsk<'a> {
    /// The strategy, which limits concurrency.
    pub strategy: &'a Arc<Strategy>,
    /// The subject whose permits are counted.
    pub subject: Subject<'a>,
    /// Id of the lease: 1 to [`MAX_LEASE_ID`](crate::model::MAX_LEASE_ID) bytes, as its holder chose.
    pub id: &'a str,
    /// Operation.
    pub op: LeaseOp,
    /// The caller's deadline.
    pub deadline: Option<Instant>,
}

/// A question about all leases of one key.
#[derive(Debug, Clone, Copy)]
pub struct LeasesAsk<'a> {
    /// The strategy, which limits concurrency.
    pub strategy: &'a Arc<Strategy>,
    /// The subject whose permits are counted.
    pub subject: Subject<'a>,
    /// Cursor of the page; `None` is the first one.
    pub after: Option<LeaseCursor<'a>>,
    /// The caller's deadline.
    pub deadline: Option<Instant>,
}

/// Storage of leases. Each call is atomic.
pub trait LeaseStore: Send + Sync + 'static {
    /// Acquires, renews or releases a lease.
    ///
    /// After [`StoreError::Timeout`] the operation may have happened once, with its answer lost. The same call under
    /// the same id then returns the state of the lease.
    fn lease(&self, ask: &LeaseAsk<'_>) -> impl Future<Output = Result<LeaseAnswer, StoreError>> + Send;

    /// Lists the leases of a key, a page at a time.
    fn leases(&self, ask: &LeasesAsk<'_>) -> impl Future<Output = Result<LeasePage, StoreError>> + Send;
}

/// Access of a worker to the leases. Clones share it.
#[derive(Clone)]
pub enum LeaseHandle {
    /// Leases over scripts.
    Scripts(Arc<dyn AskScripts>),
    /// Leases in this process.
    Process(ProcessLeases),
    /// No leases: the backend runs no scripts, and is not this process. Every call is refused by name.
    Nowhere,
}

const NO_LEASES: StoreError =
    StoreError::Unsupported("the store has no leases: it runs no scripts, and is not this process");

impl LeaseStore for LeaseHandle {
    async fn lease(&self, ask: &LeaseAsk<'_>) -> Result<LeaseAnswer, StoreError> {
        match self {
            Self::Scripts(scripts) => scripts.lease(ask).await,
            Self::Process(leases) => leases.lease(ask).await,
            Self::Nowhere => Err(NO_LEASES),
        }
    }

    async fn leases(&self, ask: &LeasesAsk<'_>) -> Result<LeasePage, StoreError> {
        match self {
            Self::Scripts(scripts) => scripts.leases(ask).await,
            Self::Process(leases) => leases.leases(ask).await,
            Self::Nowhere => Err(NO_LEASES),
        }
    }
}

impl<'a> LeaseAsk<'a> {
    /// The rule of permits.
    pub fn rule(&self) -> Result<&'a ConcurrencyRule, StoreError> {
        self.strategy.permits().ok_or(StoreError::Unsupported("the strategy has rate limits and no leases"))
    }

    /// The caller's partition, if the limit has any.
    #[must_use]
    pub fn partition(&self) -> Option<Partition<'a>> {
        let partitions = self.strategy.permits()?.numbers().partitions.as_ref()?;
        Some(partitions.of(self.subject.attributes.get(partitions.by())))
    }

    /// A number from a half to one that differs from lease to lease, for controllers that need jitter.
    #[must_use]
    pub fn jitter(&self) -> f64 {
        let rule = self.strategy.permits().and_then(ConcurrencyRule::adaptive).map(|rule| &rule.controller);
        let samples = matches!(self.op, LeaseOp::Release { .. } | LeaseOp::Sample { .. });
        match rule {
            Some(ControllerRule::Vegas(_)) if samples => {
                key::lease_jitter(self.strategy, &self.subject, self.id)
            }
            _ => 1.0,
        }
    }
}
