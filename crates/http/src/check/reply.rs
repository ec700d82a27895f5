//! The answer to a proxy: a status, and the fields of docs/http.md.

use http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use weir_proto::v1::Reason;

use super::asked::CheckDecision;
use super::settings::CheckSettings;
use crate::answers::{self, HttpAnswer};

const DECISION: HeaderName = HeaderName::from_static("weir-decision");
const REASON: HeaderName = HeaderName::from_static("weir-reason");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The result of a check.
#[derive(Debug)]
pub(super) enum CheckOutcome {
    Decided(Box<CheckDecision>),
    /// Allowed, but the request would have to wait for too long.
    TooLong(Box<CheckDecision>),
    /// Passed without a decision, by a policy.
    Passed(&'static str),
    /// Not asked.
    Refused(&'static str),
    /// The node cannot answer.
    Unavailable,
    /// The configuration cannot be right.
    Mistaken,
}

impl CheckOutcome {
    /// Returns the value of `Weir-Decision`.
    pub(super) fn decision(&self) -> &'static str {
        match self {
            Self::Decided(decision) => match (decision.allowed, decision.reason) {
                (true, Reason::StoreFailure) => "degraded",
                (true, _) => "allowed",
                (false, Reason::Never) => "never",
                (false, Reason::Banned) => "banned",
                (false, Reason::DenyList) => "denied",
                (false, Reason::StoreFailure) => "degraded",
                (false, _) => "limited",
            },
            Self::TooLong(_) => "limited",
            Self::Passed(_) => "allowed",
            Self::Refused(_) => "refused",
            Self::Unavailable | Self::Mistaken => "unavailable",
        }
    }
}

/// Returns the answer of a check.
pub(super) fn answer(settings: &CheckSettings, outcome: CheckOutcome) -> HttpAnswer {
    let decision = outcome.decision();
    let (mut answer, reason) = match outcome {
        CheckOutcome::Decided(decided) => {
            let status = status(settings, &decided);
            (fields(written(status, &decided.message), &decided), reason(decided.reason))
        }
        CheckOutcome::TooLong(decided) => {
            let sentence = "Too many requests. Please try again later.";
            (fields(written(settings.limited_status, sentence), &decided), "max_hold")
        }
        CheckOutcome::Passed(reason) => (written(StatusCode::OK, ""), reason),
        CheckOutcome::Refused(reason) => (written(StatusCode::FORBIDDEN, "The request is refused."), reason),
        CheckOutcome::Unavailable if settings.allows_on_failure => (written(StatusCode::OK, ""), "failure"),
        CheckOutcome::Unavailable => {
            (written(settings.unavailable_status, "Please try again later."), "failure")
        }
        CheckOutcome::Mistaken => {
            (written(StatusCode::INTERNAL_SERVER_ERROR, "The check cannot be decided."), "configuration")
        }
    };
    let headers = answer.headers_mut();
    headers.insert(DECISION, HeaderValue::from_static(decision));
    headers.insert(REASON, HeaderValue::from_static(reason));
    headers.insert(CACHE_CONTROL, NO_STORE);
    answer
}

/// Returns the answer to a check that there is none of.
pub(crate) fn unknown() -> HttpAnswer {
    answers::text(StatusCode::NOT_FOUND, "there is no check of this name")
}

/// An allowed request has no body.
fn written(status: StatusCode, sentence: &str) -> HttpAnswer {
    if status == StatusCode::OK { Response::new(Full::default()) } else { answers::text(status, sentence) }
}

/// Adds the fields of the decision.
fn fields(mut answer: HttpAnswer, decided: &CheckDecision) -> HttpAnswer {
    for (name, value) in &decided.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

fn status(settings: &CheckSettings, decided: &CheckDecision) -> StatusCode {
    match (decided.allowed, decided.reason) {
        (true, _) => StatusCode::OK,
        (false, Reason::Never | Reason::DenyList) => settings.never_status,
        (false, Reason::StoreFailure) => settings.unavailable_status,
        (false, _) => settings.limited_status,
    }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Unspecified => "unspecified",
        Reason::Ok => "ok",
        Reason::Limited => "limited",
        Reason::Never => "never",
        Reason::DenyList => "deny_list",
        Reason::AllowList => "allow_list",
        Reason::StoreFailure => "store_failure",
        Reason::Full => "full",
        Reason::Banned => "banned",
    }
}
