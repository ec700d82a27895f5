//! Storage of counters that nodes count on their own (`approximate`), and of the places of these nodes.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use weir_core::approximate::{ApproximateBound, CountAnswer, CountAsk, PlaceAnswer, PlaceAsk};
use weir_core::key::Subject;
use weir_core::strategy::Strategy;
use weir_units::Micros;

use crate::StoreError;

/// The key of a counter.
#[derive(Debug, Clone)]
pub struct CounterKey {
    pub(crate) name: Arc<[u8]>,
    pub(crate) slot: u16,
}

/// Storage of such counters. Each call is atomic.
pub trait CountStore: Clone + Send + Sync + 'static {
    /// The key of the counter of a subject.
    fn counter(&self, strategy: &Strategy, subject: &Subject<'_>) -> CounterKey;

    /// A number of the server that has this counter now; `None` if none is known.
    fn server_of(&self, key: &CounterKey) -> Option<u64>;

    /// Asks a counter, whose windows have this length.
    ///
    /// After an error nothing is known to be counted: either nothing was, or it was once and the answer was lost.
    fn count(
        &self,
        key: &CounterKey,
        window: Micros,
        ask: CountAsk,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<CountAnswer, StoreError>> + Send;

    /// The key of the places of a strategy, by its name in keys.
    fn places(&self, strategy: &str, bound: &ApproximateBound) -> CounterKey;

    /// Asks the places of a strategy.
    fn place(
        &self,
        key: &CounterKey,
        bound: &ApproximateBound,
        ask: PlaceAsk,
    ) -> impl Future<Output = Result<PlaceAnswer, StoreError>> + Send;
}
