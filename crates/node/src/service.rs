//! Wire ⇄ domain: the gRPC services over a limiter.
//!
//! Protobuf types stop here. A denial is an answer; everything else becomes a status in one function
//! (`service/status.rs`).
//!
//! Each method has one function. Hot methods go from bytes to bytes: [`DecisionService`] has
//! them. All methods are in the traits that are generated from the protocol as well ([`DecisionsApi`],
//! [`AdminApi`]), where those of the hot ones call the same functions.

mod admin;
mod audited;
mod batch;
mod batch_gate;
mod batch_late;
mod batch_turns;
mod count;
mod decisions;
pub mod http_headers;
mod incoming;
mod inline;
mod judge;
mod message;
pub mod put;
mod question_of;
mod refund;
mod several;
mod shaping;
mod should_allow;
mod snapshot;
mod span;
pub mod status;
mod stream;
mod wire;

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

pub use admin::AdminApi;
pub use audited::audited;
pub use batch_turns::BatchTurns;
pub use decisions::DecisionsApi;
pub use incoming::{Closing, context as call_context, incoming, one_message};
pub use judge::Judge;
pub use message::{Facts, Templates};
pub use span::{duration, micros};
pub(crate) use status::details_of;
use weir_grpc::BufferBudget;
use weir_store::Store;
use weir_time::deadlines::Deadlines;
pub use wire::{FieldValue, Malformed, MessageFields, STORE_FAILURE, attributes};

use self::batch_gate::BatchGate;
use self::inline::InlineStrategies;
pub use self::snapshot::Snapshot;

/// Adds a service to the routes of a worker.
pub type AddRoutes = Box<dyn FnOnce(tonic::service::Routes) -> tonic::service::Routes>;
use crate::access::SnapshotRights;
use crate::limiter::Limiter;
use crate::telemetry::Recorder;

/// The largest message of the admin service either way.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// `weir.v1.RateLimitService`, from the bytes of a request to the bytes of the answer, because the generated server
/// costs more than the decision.
///
/// It outlasts reloads. Each round has the current [`Decisions`] once.
pub struct DecisionService<S> {
    current: ArcSwap<Decisions<S>>,
    /// The decisions for rounds of unary calls, which are the most. To hold them costs 57 instructions less than to load
    /// `current`, 1 % of a call. Only a reload takes it besides the worker: a round that meets one loads `current`.
    held: Mutex<Arc<Decisions<S>>>,
    deadlines: Deadlines,
    batches: BatchGate,
}

/// The decisions of one worker under one snapshot of the configuration. A call keeps it until it is answered, so that no
/// question is decided with parts of two.
pub struct Decisions<S> {
    limiter: Limiter<S>,
    rights: SnapshotRights,
    templates: Arc<Templates>,
    /// Bound of a message in bytes, except for batches.
    largest: usize,
    deadlines: Deadlines,
    /// Outlasts reloads.
    inline: Arc<InlineStrategies>,
}

impl<S: Store> DecisionService<S> {
    /// The service over a limiter, for messages of at most `largest` bytes.
    pub fn new(limiter: Limiter<S>, templates: Arc<Templates>, largest: usize) -> Arc<Self> {
        Self::within(limiter, templates, largest, None)
    }

    /// Creates the service, with batches that wait counted in `budget`.
    pub fn within(
        limiter: Limiter<S>,
        templates: Arc<Templates>,
        largest: usize,
        budget: Option<BufferBudget>,
    ) -> Arc<Self> {
        let (deadlines, inline) = (Deadlines::default(), Arc::default());
        let rights = SnapshotRights::default();
        let first = Arc::new(Decisions { limiter, rights, templates, largest, deadlines, inline });
        let deadlines = first.deadlines.clone();
        let (current, held) = (ArcSwap::from(Arc::clone(&first)), Mutex::new(first));
        Arc::new(Self { deadlines, current, held, batches: BatchGate::new(budget) })
    }

    /// The decisions under the current snapshot.
    pub fn current(&self) -> Arc<Decisions<S>> {
        self.current.load_full()
    }

    /// Serves another snapshot from now on. Calls that have begun keep theirs.
    pub fn follow(&self, snapshot: &Snapshot, recorder: Arc<Recorder>) {
        let before = self.current.load();
        let next = Arc::new(Decisions {
            limiter: before.limiter.under(Arc::clone(&snapshot.rules), recorder),
            rights: snapshot.rights.clone(),
            templates: Arc::clone(&snapshot.templates),
            largest: before.largest,
            deadlines: before.deadlines.clone(),
            inline: Arc::clone(&before.inline),
        });
        self.current.store(Arc::clone(&next));
        *self.held.lock() = next;
    }

    /// Bound of a message in bytes, except for batches.
    fn largest(&self) -> usize {
        self.current.load().largest
    }

    pub(crate) fn store(&self) -> Arc<S> {
        self.current.load().limiter.store()
    }

    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }
}
