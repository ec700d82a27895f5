//! The question and the decision, as messages of the wire.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use weir_proto::v1::{Reason, ShouldAllowRequest, ShouldAllowResponse};

/// The method that decides.
pub(super) const SHOULD_ALLOW: &str = "/weir.v1.RateLimitService/ShouldAllow";

/// The parts of a decision that a check needs.
#[derive(Debug)]
pub(super) struct CheckDecision {
    pub(super) allowed: bool,
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) headers: BTreeMap<String, String>,
    /// The time that the request must be held.
    pub(super) wait: Duration,
}

pub(super) fn encoded(question: &ShouldAllowRequest) -> Bytes {
    question.encode_to_vec().into()
}

/// Reads the answer of the node.
pub(super) fn decoded(answer: &[u8]) -> Option<CheckDecision> {
    let answer = ShouldAllowResponse::decode(answer).ok()?;
    let wait = answer.wait.and_then(|wait| Duration::try_from(wait).ok()).unwrap_or_default();
    Some(CheckDecision {
        allowed: answer.allowed,
        reason: answer.reason(),
        wait,
        headers: answer.headers,
        message: answer.message,
    })
}
