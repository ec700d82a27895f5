//! `envoy.service.ratelimit.v3.RateLimitService`: wire ⇄ domain for Envoy's rate limit filters.

mod generated;
mod headers;
mod json;
mod json_message;
mod metadata;
mod request;
mod response;

use std::cell::Cell;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use tonic::Status;
use weir_config::AccessRight;
use weir_grpc::{Call, CallContext, IncomingCall, Reply, reply, turn};

pub use generated::EnvoyService;
pub use json::{EnvoyJson, JsonAnswer, JsonError};
use weir_node::access::SnapshotRights;
use weir_node::current_method;
use weir_node::feature::{Decide, FollowSnapshot, ServiceContext};
use weir_node::limiter::LimiterError;
use weir_node::service::{Snapshot, status};
use weir_node::telemetry::{Recorder, WorkerRecorder};
use weir_store::at_once;
use weir_time::deadlines::Deadlines;

use crate::limiter::{EnvoyDecisions, EnvoyLimiter, Loaded, RateLimitAnswer, RateLimitAsk};
use crate::metrics::{AnswerCode, EnvoyMetrics};
use crate::settings::{ENVOY, EnvoyConfig};

/// The largest request: values of 64 KiB are legal, and a request has several.
pub const MAX_RATE_LIMIT_BYTES: usize = 1 << 20;

/// Bytes of a typical status.
const STATUS_BYTES: usize = 32;

/// Largest buffer that is kept for the next answer.
const MOST_KEPT: usize = 4 << 10;

thread_local! {
    /// The buffer of the last answer.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Parts that the services of all workers share.
#[derive(Clone)]
pub struct EnvoyParts {
    /// The settings of requests and answers.
    pub config: EnvoyConfig,
    /// The metrics of hits.
    pub metrics: EnvoyMetrics,
}

impl EnvoyParts {
    /// Creates the service of one worker, and what gives it each later snapshot.
    #[must_use]
    pub fn worker(
        &self,
        worker: &ServiceContext,
        snapshot: &Snapshot,
    ) -> (Arc<EnvoyRateLimit>, FollowSnapshot) {
        let limiter = EnvoyLimiter::new(self.config.clone(), self.metrics.recorder(worker.worker));
        let envoy = EnvoyRateLimit::new(worker, snapshot, limiter);
        let (followed, recorder) = (Arc::downgrade(&envoy), Arc::clone(&worker.recorder));
        let follow = move |snapshot: &Snapshot| {
            let Some(envoy) = followed.upgrade() else { return false };
            envoy.follow(snapshot, &recorder);
            true
        };
        (envoy, Box::new(follow))
    }
}

/// The service, over the limiter of all decisions. Like them it maps the bytes of a request to the bytes of an
/// answer.
pub struct EnvoyRateLimit {
    current: ArcSwap<CurrentRules>,
    store: Arc<dyn Decide>,
    at_once: bool,
    deadlines: Deadlines,
    envoy: EnvoyLimiter,
}

/// Parts that answer a request. A request keeps them until its answer, so that two snapshots never mix in it.
struct CurrentRules {
    decisions: EnvoyDecisions,
    rights: SnapshotRights,
    /// The rules of Envoy's files; `None` if none were read.
    loaded: Option<Arc<Loaded>>,
}

impl EnvoyRateLimit {
    /// Creates the service of one worker, under the current snapshot.
    pub fn new(worker: &ServiceContext, snapshot: &Snapshot, envoy: EnvoyLimiter) -> Arc<Self> {
        let (store, deadlines) = (Arc::clone(&worker.store), worker.deadlines.clone());
        let recorder = worker.recorder.under(&snapshot.rows);
        let current = ArcSwap::from_pointee(CurrentRules::new(&store, snapshot, recorder));
        let at_once = store.is_at_once();
        Arc::new(Self { current, store, at_once, deadlines, envoy })
    }

    /// Serves another snapshot from now on. Requests that have begun keep theirs.
    pub fn follow(&self, snapshot: &Snapshot, recorder: &WorkerRecorder) {
        let recorder = recorder.under(&snapshot.rows);
        self.current.store(Arc::new(CurrentRules::new(&self.store, snapshot, recorder)));
    }

    /// Answers one request; at once, if it has arrived and the store answers at once.
    pub fn should_rate_limit(self: &Arc<Self>, call: IncomingCall) -> Call {
        let IncomingCall { context, mut messages } = call;
        if self.at_once
            && let Some(message) = at_once(messages.only())
        {
            return Call::done(message.and_then(|message| self.answer_at_once(&message, &context)));
        }
        let service = Arc::clone(self);
        Call::waiting(&self.deadlines, context.deadline, async move {
            let message = messages.only().await?;
            service.answer(&message, &context).await
        })
    }

    fn answer_at_once(&self, message: &[u8], context: &CallContext) -> Result<Reply, Status> {
        let current = self.current.load();
        let mut ask = RateLimitAsk::new(current.rights.of(context), context.deadline);
        let loaded = self.read(&mut ask, &current, message)?;
        if current.decisions.asks_once(&self.envoy, &ask) {
            return self.reply(current.decisions.rate_limit_at_once(&self.envoy, loaded, &ask), &ask);
        }
        let broken = || Err(Status::internal("the store answers at once, and did not"));
        at_once(self.answer_read(&current, loaded, &ask)).unwrap_or_else(broken)
    }

    async fn answer(&self, message: &[u8], context: &CallContext) -> Result<Reply, Status> {
        let current = self.current.load();
        let mut ask = RateLimitAsk::new(current.rights.of(context), context.deadline);
        let loaded = self.read(&mut ask, &current, message)?;
        self.answer_read(&current, loaded, &ask).await
    }

    async fn answer_read(
        &self,
        current: &CurrentRules,
        loaded: &Loaded,
        ask: &RateLimitAsk<'_>,
    ) -> Result<Reply, Status> {
        self.reply(current.decisions.rate_limit(&self.envoy, loaded, ask).await, ask)
    }

    /// Reads a request, and returns the rules that it is answered by.
    #[inline]
    fn read<'c, 'm>(
        &self,
        ask: &mut RateLimitAsk<'m>,
        current: &'c CurrentRules,
        message: &'m [u8],
    ) -> Result<&'c Loaded, Status> {
        ask.rights.check_any(AccessRight::Envoy).map_err(status::refused)?;
        let Some(loaded) = &current.loaded else {
            self.envoy.unread(AnswerCode::FailedPrecondition);
            return Err(Status::failed_precondition("no rate limit configuration loaded"));
        };
        current_method::set("ShouldRateLimit");
        request::read(ask, message).map_err(|error| {
            self.envoy.unread(AnswerCode::Internal);
            status::malformed(error)
        })?;
        turn::spend(ask.descriptors.len());
        Ok(loaded)
    }

    /// An answer is written to a buffer that is used again, and copied: a vector that is larger than the answer would need
    /// an allocation beside its own.
    #[inline]
    fn reply(
        &self,
        answer: Result<RateLimitAnswer<'_>, LimiterError>,
        ask: &RateLimitAsk<'_>,
    ) -> Result<Reply, Status> {
        let answer = answer.map_err(status::new)?;
        let mut message = BUFFER.take();
        message.clear();
        message.reserve(STATUS_BYTES * (1 + answer.statuses.len()));
        reply::frame(&mut message, |out| response::write(out, &answer, ask, self.envoy.config()));
        let bytes = Bytes::copy_from_slice(&message);
        if message.capacity() <= MOST_KEPT {
            BUFFER.set(message);
        }
        Ok(Reply::Message(bytes))
    }
}

impl CurrentRules {
    fn new(store: &Arc<dyn Decide>, snapshot: &Snapshot, recorder: Arc<Recorder>) -> Self {
        Self {
            decisions: EnvoyDecisions::new(Arc::clone(store), recorder, snapshot.reserve),
            rights: snapshot.rights.clone(),
            loaded: snapshot.features.get(ENVOY),
        }
    }
}
