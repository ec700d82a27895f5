//! `RateLimitResponse`, encoded directly from an answer.

use prost::Message as _;
use weir_node::service::put::{nested, number, text};
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;

use super::{EnvoyAnswers, headers, metadata};
use crate::limiter::{DescriptorStatus, RateLimitAnswer, RateLimitAsk};

/// Appends the response.
pub(super) fn write(
    out: &mut Vec<u8>,
    answer: &RateLimitAnswer<'_>,
    ask: &RateLimitAsk<'_>,
    answers: &EnvoyAnswers,
) {
    number(out, 1, code(answer.overall.over));
    for one in &answer.statuses {
        nested(out, 2, |out| status(out, one));
    }
    if let Some(names) = &answers.headers {
        for (name, value) in headers::of(names, answer) {
            nested(out, 3, |out| {
                text(out, 1, name);
                text(out, 2, &value.to_string());
            });
        }
    }
    if answers.standard_headers {
        for (name, value) in headers::standard(answer).into_iter().flatten() {
            nested(out, 3, |out| {
                text(out, 1, name);
                text(out, 2, &value);
            });
        }
    }
    if answers.dynamic_metadata {
        nested(out, 6, |out| out.extend_from_slice(&metadata::of(answer, ask).encode_to_vec()));
    }
}

const fn code(over: bool) -> u64 {
    (if over { Code::OverLimit } else { Code::Ok }) as u64
}

fn status(out: &mut Vec<u8>, one: &DescriptorStatus<'_>) {
    number(out, 1, code(one.is_over()));
    if let Some(limit) = one.limit() {
        nested(out, 2, |out| {
            number(out, 1, limit.requests_per_unit().into());
            // Both of Envoy's enumerations number the units alike.
            number(out, 2, limit.unit().wire().unsigned_abs().into());
            text(out, 3, one.rule().map_or("", |rule| &rule.name));
        });
    }
    number(out, 3, one.remaining.into());
    if let Some(seconds) = one.until_reset_s {
        nested(out, 4, |out| number(out, 1, seconds));
    }
}
