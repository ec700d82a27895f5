//! Wire ⇄ domain: the gRPC services over a limiter.
//!
//! Protobuf types stop here. A denial is an answer; everything else becomes a status in one function
//! (`service/status.rs`).
//!
//! Each method has one function. Hot methods go from bytes to bytes: [`DecisionService`] and [`EnvoyRateLimit`] have
//! them. All methods are in the traits that are generated from the protocol as well ([`DecisionsApi`],
//! [`EnvoyService`], [`ConcurrencyApi`], [`QueueApi`], [`AdminApi`]), where those of the hot ones call the same functions.

mod admin;
mod batch;
mod batch_turns;
mod concurrency;
mod count;
mod decisions;
mod envoy;
mod http_headers;
mod incoming;
mod inline;
mod judge;
mod message;
mod question_of;
mod queue;
mod refund;
mod several;
mod shaping;
mod should_allow;
mod span;
mod status;
mod stream;
mod usage;
mod wire;

use std::sync::Arc;

pub use admin::AdminApi;
pub use batch_turns::BatchTurns;
pub use concurrency::ConcurrencyApi;
pub use decisions::DecisionsApi;
pub use envoy::{
    EnvoyAnswers, EnvoyJson, EnvoyRateLimit, EnvoyService, HeaderNames, JsonAnswer, JsonError,
    MAX_RATE_LIMIT_BYTES,
};
pub use incoming::Closing;
pub use message::Templates;
pub use queue::QueueApi;
pub use usage::UsageApi;
use weir_store::Store;
use weir_time::deadlines::Deadlines;

use self::inline::InlineStrategies;
use crate::limiter::Limiter;

/// The largest message of the admin service either way.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// `weir.v1.RateLimitService`, from the bytes of a request to the bytes of the answer, because the generated server
/// costs more than the decision.
pub struct DecisionService<S> {
    limiter: Limiter<S>,
    templates: Arc<Templates>,
    /// Bound of a message in bytes, except for batches.
    largest: usize,
    deadlines: Deadlines,
    inline: InlineStrategies,
}

impl<S: Store> DecisionService<S> {
    /// The service over a limiter, for messages of at most `largest` bytes.
    pub fn new(limiter: Limiter<S>, templates: Arc<Templates>, largest: usize) -> Arc<Self> {
        let (deadlines, inline) = (Deadlines::default(), InlineStrategies::default());
        Arc::new(Self { limiter, templates, largest, deadlines, inline })
    }

    /// The deadlines of all services of its worker.
    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }
}
