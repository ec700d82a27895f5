//! Wire ⇄ domain: the gRPC services over a limiter.
//!
//! Protobuf types stop here. A denial is an answer; everything else becomes a status in one function
//! (`service/status.rs`).

mod admin;
mod batch;
mod call;
mod deadline;
mod envoy;
mod message;
mod messages;
mod refund;
mod reply;
mod several;
mod should_allow;
mod status;
mod stream;
mod wire;

use std::sync::Arc;

use tokio::sync::Semaphore;

pub use admin::Admin;
pub use call::{Call, Sent};
pub use envoy::{EnvoyAnswers, EnvoyRateLimit, HeaderNames};
pub use message::Templates;
pub use reply::{Poured, Reply};
pub use should_allow::{Begun, Posed, Unanswered};

use crate::deadlines::Deadlines;
use crate::limiter::Limiter;
use crate::store::Store;

/// What a call takes when it does not say.
const DEFAULT_COST: u64 = 1;

/// The largest message of the admin service either way.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// `weir.v1.RateLimitService`. Its calls are answered here, from the bytes of the request to those of the
/// answer, because the generated server costs more than what it serves.
pub struct RateLimit<S> {
    limiter: Limiter<S>,
    templates: Arc<Templates>,
    /// The most bytes that a message may have, but for batches.
    largest: usize,
    batches: Semaphore,
    deadlines: Deadlines,
}

impl<S: Store> RateLimit<S> {
    /// The service over a limiter, for messages of at most `largest` bytes.
    pub fn new(limiter: Limiter<S>, templates: Arc<Templates>, largest: usize) -> Arc<Self> {
        let batches = Semaphore::new(batch::MAX_BATCHES);
        Arc::new(Self { limiter, templates, largest, batches, deadlines: Deadlines::default() })
    }

    /// Those of all services of its worker.
    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }
}
