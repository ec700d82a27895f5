//! Storage of leases: a trait of its own, which two engines have: scripts, and this process.

mod memory;
mod none;
mod scripts;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use weir_core::key::{self, Subject};
use weir_core::strategy::{ConcurrencyRule, ControllerRule, Partition, Strategy};
use weir_store::StoreError;

pub use self::memory::ProcessLeases;
pub use self::none::NoLeases;
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
    /// After [`StoreError::Timeout`] it may have happened once, and the answer was lost: the same call under the same
    /// id then says what is the case.
    fn lease(&self, ask: &LeaseAsk<'_>) -> impl Future<Output = Result<LeaseAnswer, StoreError>> + Send;

    /// Lists the leases of a key, a page at a time. It changes nothing.
    fn leases(&self, ask: &LeasesAsk<'_>) -> impl Future<Output = Result<LeasePage, StoreError>> + Send;
}

/// Handle of a lease store of any type. Clones share it.
#[derive(Clone)]
pub struct LeaseHandle(Arc<dyn AnyLeaseStore>);

impl LeaseHandle {
    /// A handle to `store`.
    pub fn new(store: impl LeaseStore) -> Self {
        Self(Arc::new(store))
    }
}

impl LeaseStore for LeaseHandle {
    async fn lease(&self, ask: &LeaseAsk<'_>) -> Result<LeaseAnswer, StoreError> {
        self.0.lease_boxed(ask).await
    }

    async fn leases(&self, ask: &LeasesAsk<'_>) -> Result<LeasePage, StoreError> {
        self.0.leases_boxed(ask).await
    }
}

/// Object-safe [`LeaseStore`]. The allocation is small beside the cost of a lease.
trait AnyLeaseStore: Send + Sync {
    fn lease_boxed<'a>(&'a self, ask: &'a LeaseAsk<'a>) -> LeaseFuture<'a, LeaseAnswer>;
    fn leases_boxed<'a>(&'a self, ask: &'a LeasesAsk<'a>) -> LeaseFuture<'a, LeasePage>;
}

type LeaseFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

impl<S: LeaseStore> AnyLeaseStore for S {
    fn lease_boxed<'a>(&'a self, ask: &'a LeaseAsk<'a>) -> LeaseFuture<'a, LeaseAnswer> {
        Box::pin(self.lease(ask))
    }

    fn leases_boxed<'a>(&'a self, ask: &'a LeasesAsk<'a>) -> LeaseFuture<'a, LeasePage> {
        Box::pin(self.leases(ask))
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
