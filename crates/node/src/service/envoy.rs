//! `envoy.service.ratelimit.v3.RateLimitService`: wire ⇄ domain for Envoy's rate limit filters.

mod headers;
mod json;
mod json_message;
mod metadata;
mod response;
mod service;

use std::sync::Arc;

use tonic::Status;
use weir_config::AccessRight;
use weir_grpc::{Call, CallContext, IncomingCall, Reply, turn};

pub use headers::HeaderNames;
pub use json::{EnvoyJson, JsonAnswer, JsonError};
pub use service::EnvoyService;
use weir_store::{Store, at_once};

use super::{DecisionService, status, wire};
use crate::called;
use crate::limiter::envoy::EnvoyLimiter;
use crate::telemetry::AnswerCode;

/// The largest request: values of 64 KiB are legal, and a request has several.
pub const MAX_RATE_LIMIT_BYTES: usize = 1 << 20;

/// Bytes of a typical status.
const STATUS_BYTES: usize = 32;

/// Optional parts of an answer.
#[derive(Debug, Clone, Default)]
pub struct EnvoyAnswers {
    /// Names of the headers with the client's limit; `None` leaves them out.
    pub headers: Option<HeaderNames>,
    /// True if answers have the fields `RateLimit` and `RateLimit-Policy`.
    pub standard_headers: bool,
    /// True if answers have dynamic metadata for Envoy's other filters.
    pub dynamic_metadata: bool,
}

/// The service, over the limiter of all decisions. Like them it maps the bytes of a request to the bytes of an
/// answer.
pub struct EnvoyRateLimit<S> {
    decisions: Arc<DecisionService<S>>,
    envoy: EnvoyLimiter,
    answers: EnvoyAnswers,
}

impl<S: Store> EnvoyRateLimit<S> {
    /// The service under the rules that `decisions` has at each request.
    pub fn new(decisions: &Arc<DecisionService<S>>, envoy: EnvoyLimiter, answers: EnvoyAnswers) -> Arc<Self> {
        let decisions = Arc::clone(decisions);
        Arc::new(Self { decisions, envoy, answers })
    }

    /// Answers one request; at once, if it has arrived and the store answers at once.
    pub fn should_rate_limit(self: &Arc<Self>, call: IncomingCall) -> Call {
        let IncomingCall { context, mut messages } = call;
        if S::AT_ONCE
            && let Some(message) = at_once(messages.only())
        {
            return Call::done(message.and_then(|message| self.answer_at_once(&message, &context)));
        }
        let service = Arc::clone(self);
        Call::waiting(&self.decisions.deadlines, context.deadline, async move {
            let message = messages.only().await?;
            service.answer(&message, &context).await
        })
    }

    fn answer_at_once(&self, message: &[u8], context: &CallContext) -> Result<Reply, Status> {
        let broken = || Err(Status::internal("the store answers at once, and did not"));
        at_once(self.answer(message, context)).unwrap_or_else(broken)
    }

    async fn answer(&self, message: &[u8], context: &CallContext) -> Result<Reply, Status> {
        let current = self.decisions.current.load();
        let rights = current.rights.of(context);
        rights.check_any(AccessRight::Envoy).map_err(status::refused)?;
        let Some(loaded) = &current.envoy else {
            self.envoy.unread(AnswerCode::FailedPrecondition);
            return Err(Status::failed_precondition("no rate limit configuration loaded"));
        };
        called::serves("ShouldRateLimit");
        let ask = wire::rate_limit(message, context.deadline, rights).map_err(|error| {
            self.envoy.unread(AnswerCode::Internal);
            status::malformed(error)
        })?;
        turn::spend(ask.descriptors.len());
        let answer = current.limiter.rate_limit(&self.envoy, loaded, &ask).await;
        let answer = answer.map_err(status::of)?;
        let bytes = STATUS_BYTES * (1 + answer.statuses.len());
        Ok(Reply::message(bytes, |out| response::write(out, &answer, &ask, &self.answers)))
    }
}
