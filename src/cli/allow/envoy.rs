//! `weir allow --envoy DOMAIN KEY=VALUE,…`: a request in Envoy's protocol, and its answer.

use std::fmt::Write as _;

use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus};
use weir_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

use crate::cli::render;

/// Builds a request with one descriptor of `domain`.
pub(super) fn request(domain: String, entries: Vec<(String, String)>, hits: u32) -> RateLimitRequest {
    let entries = entries.into_iter().map(|(key, value)| Entry { key, value }).collect();
    let descriptor = RateLimitDescriptor { entries, ..RateLimitDescriptor::default() };
    RateLimitRequest { domain, descriptors: vec![descriptor], hits_addend: hits }
}

/// True if Envoy would let the call pass.
pub(super) fn allows(response: &RateLimitResponse) -> bool {
    response.overall_code() == Code::Ok
}

/// Formats the code and the rule's numbers.
pub(super) fn text(response: &RateLimitResponse) -> String {
    let mut out = format!("{}\n", if allows(response) { "allowed: OK" } else { "denied: OVER_LIMIT" });
    for status in &response.statuses {
        let _ = writeln!(out, "  {}", numbers(status));
    }
    out
}

fn numbers(status: &DescriptorStatus) -> String {
    let Some(limit) = &status.current_limit else {
        return "no rule with a limit matches: nothing was charged".to_owned();
    };
    let unit = match limit.unit() {
        Unit::Unknown => "unit",
        Unit::Second => "second",
        Unit::Minute => "minute",
        Unit::Hour => "hour",
        Unit::Day => "day",
        Unit::Month => "month",
        Unit::Year => "year",
        Unit::Week => "week",
    };
    let reset = status.duration_until_reset.as_ref();
    let reset = reset.map(|span| format!(", full again in {}", render::duration(span)));
    format!(
        "{} of {} per {unit} remaining{}",
        status.limit_remaining,
        limit.requests_per_unit,
        reset.unwrap_or_default()
    )
}
