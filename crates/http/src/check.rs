//! `/check/NAME`: a proxy asks whether it may pass a request on, and takes the status for an answer.
//!
//! ```text
//!   headers of the proxy ── values: address, path, … ── question ── the node's ShouldAllow ── status and headers
//! ```
//!
//! Only what the check names is read: everything else is what the client of the proxy has sent.

mod address;
mod asked;
mod current;
mod reply;
mod settings;
mod target;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Request};
use weir_grpc::{CallContext, PeerAddress};
use weir_node::feature::{CallError, CallsCheck, NodeCall, NodeCalls};
use weir_time::clock::monotonic;

use self::asked::{SHOULD_ALLOW, decoded, encoded};
pub(crate) use self::current::{ConfiguredChecks, CurrentChecks};
use self::reply::CheckOutcome;
pub(crate) use self::reply::unknown;
pub(crate) use self::settings::{CheckSettings, checks, schema};
use self::values::Unfit;
use crate::answers::HttpAnswer;
use crate::codes::{
    CANCELED, DEADLINE_EXCEEDED, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAUTHENTICATED, UNAVAILABLE,
};
use crate::metrics::CheckMetrics;
use crate::minutely::Minutely;

/// A check. Workers share it.
pub(crate) struct ProxyCheck {
    settings: Arc<CheckSettings>,
    metrics: CheckMetrics,
    mistakes: Minutely,
}

/// The connection that a check is asked on.
pub(crate) struct CheckedBy<'a> {
    pub(crate) calls: &'a dyn NodeCalls,
    pub(crate) check: &'a CallsCheck,
    pub(crate) peer: PeerAddress,
    pub(crate) has_identity: bool,
}

impl ProxyCheck {
    fn new(settings: Arc<CheckSettings>, metrics: CheckMetrics) -> Self {
        Self { settings, metrics, mistakes: Minutely::default() }
    }

    /// Answers a question of a proxy. A body is not read: if there is one, the connection ends.
    pub(crate) async fn answer<B>(&self, request: &Request<B>, by: &CheckedBy<'_>) -> HttpAnswer {
        let outcome = self.outcome(request.headers(), by).await;
        self.metrics.count(outcome.decision());
        if let CheckOutcome::Refused(rule) = outcome {
            self.metrics.log_refused(rule, by.peer);
        }
        let mut answer = reply::answer(&self.settings, outcome);
        let length = request.headers().get(CONTENT_LENGTH);
        let has_body = length.is_some_and(|length| length != "0");
        if has_body || request.headers().contains_key(TRANSFER_ENCODING) {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    async fn outcome(&self, headers: &HeaderMap, by: &CheckedBy<'_>) -> CheckOutcome {
        let context = match self.admitted(headers, by) {
            Ok(context) => context,
            Err(outcome) => return outcome,
        };
        let question = match values::question(&self.settings, headers) {
            Ok(question) => question,
            Err(Unfit::Bad) => return CheckOutcome::Refused("bad_request"),
            Err(Unfit::Absent) if self.settings.allows_missing() => return CheckOutcome::Passed("missing"),
            Err(Unfit::Absent) => return CheckOutcome::Refused("missing"),
        };
        let deadline = monotonic().checked_add(self.settings.deadline);
        let context = CallContext { deadline, ..context };
        let answered = match by.calls.call(SHOULD_ALLOW, context, encoded(&question)) {
            NodeCall::Answered(answered) => answered,
            NodeCall::Waiting(call) => tokio::time::timeout(self.settings.deadline, call)
                .await
                .unwrap_or_else(|_| Err(crate::answers::call_error(DEADLINE_EXCEEDED, ""))),
        };
        let Some(decision) = (match answered {
            Ok(answer) => decoded(&answer),
            Err(error) => return self.failed(&error),
        }) else {
            return CheckOutcome::Mistaken;
        };
        let wait = decision.wait;
        if wait > self.settings.max_hold {
            return CheckOutcome::TooLong(Box::new(decision));
        }
        if wait > Duration::ZERO {
            tokio::time::sleep(wait).await;
        }
        CheckOutcome::Decided(Box::new(decision))
    }

    /// Returns the context of a call of the proxy; or the refusal of one that may not ask.
    fn admitted(&self, headers: &HeaderMap, by: &CheckedBy<'_>) -> Result<CallContext, CheckOutcome> {
        if !by.has_identity && !self.settings.may_ask(by.peer) {
            return Err(CheckOutcome::Refused("peer"));
        }
        // Other headers that gRPC knows are what the client of the proxy has sent.
        let mut own = HeaderMap::new();
        for value in headers.get_all(AUTHORIZATION) {
            own.append(AUTHORIZATION, value.clone());
        }
        by.check.context(SHOULD_ALLOW, &own).map_err(|error| match error.code {
            UNAVAILABLE => self.failed(&error),
            _ => CheckOutcome::Refused("identity"),
        })
    }

    /// Returns the outcome of a call without an answer.
    fn failed(&self, error: &CallError) -> CheckOutcome {
        match error.code {
            UNAVAILABLE | DEADLINE_EXCEEDED | RESOURCE_EXHAUSTED | CANCELED => CheckOutcome::Unavailable,
            UNAUTHENTICATED | PERMISSION_DENIED => CheckOutcome::Refused("identity"),
            _ => {
                let (check, error) = (&self.settings.name, &error.message);
                self.mistakes.say(|suppressed| {
                    tracing::warn!(
                        check,
                        error,
                        suppressed,
                        "cannot decide a check; correct its configuration"
                    );
                });
                CheckOutcome::Mistaken
            }
        }
    }
}
