//! The notation of the cases.
//!
//! ```text
//!   another [key2=v] [key3=v]!0 +3 => OVER | OK 17 of 20/MINUTE 60s | …
//!   └domain └ descriptors         └ the request's hits_addend       └ the answer for each descriptor
//!
//!   [k=v,k2=v2]    entries          [k=v]!7   its own hits_addend     [k=v]~     its hits are given back
//!   [k=v]@10/DAY   a limit that the request brings along
//!
//!   OK                          the code and nothing else
//!   OK 4 of 5/SECOND name 1s    limit_remaining, current_limit, duration_until_reset
//! ```

use tonic::Status;
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{Entry, RateLimitOverride};
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus};
use weir_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use weir_proto::envoy::r#type::v3::RateLimitUnit;

/// The request that `text` is.
pub(super) fn request(text: &str) -> RateLimitRequest {
    let mut request = RateLimitRequest::default();
    for (index, word) in text.split_whitespace().enumerate() {
        match word.split_at(1) {
            ("[", _) => request.descriptors.push(descriptor(word)),
            ("+", addend) => request.hits_addend = addend.parse().unwrap(),
            _ if index == 0 => word.trim_matches('"').clone_into(&mut request.domain),
            _ => panic!("{word} of {text}"),
        }
    }
    request
}

fn descriptor(word: &str) -> RateLimitDescriptor {
    let (entries, rest) = word[1..].rsplit_once(']').unwrap();
    let (rest, is_negative_hits) = rest.strip_suffix('~').map_or((rest, false), |rest| (rest, true));
    let (rest, hits_addend) =
        rest.split_once('!').map_or((rest, None), |(rest, hits)| (rest, Some(hits.parse().unwrap())));
    let limit = rest.strip_prefix('@').map(|limit| {
        let (requests, unit) = limit.split_once('/').unwrap();
        let unit = RateLimitUnit::from_str_name(unit).map_or_else(|| unit.parse().unwrap(), i32::from);
        RateLimitOverride { requests_per_unit: requests.parse().unwrap(), unit }
    });
    let entries = entries.split(',').filter_map(|entry| entry.split_once('='));
    let entries = entries.map(|(key, value)| Entry { key: key.to_owned(), value: value.to_owned() });
    RateLimitDescriptor { entries: entries.collect(), limit, hits_addend, is_negative_hits }
}

/// An answer in the notation of the cases.
pub(super) fn answer(answer: &Result<RateLimitResponse, Status>) -> String {
    let response = match answer {
        Ok(response) => response,
        Err(status) => return format!("{:?}: {}", status.code(), status.message()),
    };
    let mut parts = vec![code(response.overall_code()).to_owned()];
    parts.extend(response.statuses.iter().map(status));
    parts.join(" | ")
}

fn status(status: &DescriptorStatus) -> String {
    let mut text = code(status.code()).to_owned();
    if status.limit_remaining > 0 || status.current_limit.is_some() {
        text += &format!(" {}", status.limit_remaining);
    }
    if let Some(limit) = &status.current_limit {
        text += &format!(" of {}/{}", limit.requests_per_unit, limit.unit().as_str_name());
        if !limit.name.is_empty() {
            text += &format!(" {}", limit.name);
        }
    }
    if let Some(reset) = &status.duration_until_reset {
        assert_eq!(reset.nanos, 0, "Envoy shows whole seconds");
        text += &format!(" {}s", reset.seconds);
    }
    text
}

fn code(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::OverLimit => "OVER",
        Code::Unknown => "UNKNOWN",
    }
}
