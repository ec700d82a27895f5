//! The messages, to the byte. The bytes were made by Python's protobuf from Envoy's own definitions (the
//! package `xds-protos` 1.85.0), so they do not come from ours.

use prost::Message as _;
use prost_types::value::Kind;
use prost_types::{Duration, Struct, Value};
use weir_proto::envoy::config::core::v3::HeaderValue;
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{Entry, RateLimitOverride};
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit, rate_limit::Unit,
};
use weir_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use weir_proto::envoy::r#type::v3::RateLimitUnit;

use crate::support::grpc::unhex;

const REQUEST: &str = "0a046564676512160a0a0a047061746812022f610a060a04757365721a0012200a070a02c3a91201781208\
    08ffffffff0f10061a0b08ffffffffffffffffff0118ac02";

const RESPONSE: &str = "0802121c0801120c080a10071a067765656b6c7918ffffffff0f22040880f524120208021a150a0f52617465\
    4c696d69742d4c696d69741202313022060a01781a01ff2a026e6f32120a100a06646f6d61696e12061a0465646765";

#[test]
fn requests_are_envoys() {
    let entry = |key: &str, value: &str| Entry { key: key.to_owned(), value: value.to_owned() };
    let request = RateLimitRequest {
        domain: "edge".to_owned(),
        descriptors: vec![
            RateLimitDescriptor {
                entries: vec![entry("path", "/a"), entry("user", "")],
                hits_addend: Some(0),
                ..RateLimitDescriptor::default()
            },
            RateLimitDescriptor {
                entries: vec![entry("é", "x")],
                limit: Some(RateLimitOverride {
                    requests_per_unit: u32::MAX,
                    unit: RateLimitUnit::Year.into(),
                }),
                hits_addend: Some(u64::MAX),
                is_negative_hits: false,
            },
        ],
        hits_addend: 300,
    };
    assert_eq!(RateLimitRequest::decode(&*unhex(REQUEST)).unwrap(), request);
    assert_eq!(request.encode_to_vec(), unhex(REQUEST));
}

/// Field 4, a boolean; newer than that package.
#[test]
fn hits_that_are_given_back_are_envoys() {
    let descriptor = RateLimitDescriptor { is_negative_hits: true, ..RateLimitDescriptor::default() };
    assert_eq!(descriptor.encode_to_vec(), [4 << 3, 1]);
}

/// With the fields that we never send: Envoy might one day ask for them.
#[test]
fn responses_are_envoys() {
    let header = |key: &str, value: &str, raw: &[u8]| HeaderValue {
        key: key.to_owned(),
        value: value.to_owned(),
        raw_value: raw.to_owned(),
    };
    let domain = Value { kind: Some(Kind::StringValue("edge".to_owned())) };
    let response = RateLimitResponse {
        overall_code: Code::OverLimit.into(),
        statuses: vec![
            DescriptorStatus {
                code: Code::Ok.into(),
                current_limit: Some(RateLimit {
                    requests_per_unit: 10,
                    unit: Unit::Week.into(),
                    name: "weekly".to_owned(),
                }),
                limit_remaining: u32::MAX,
                duration_until_reset: Some(Duration { seconds: 604_800, nanos: 0 }),
            },
            DescriptorStatus { code: Code::OverLimit.into(), ..DescriptorStatus::default() },
        ],
        response_headers_to_add: vec![header("RateLimit-Limit", "10", b"")],
        request_headers_to_add: vec![header("x", "", b"\xff")],
        raw_body: b"no".to_vec(),
        dynamic_metadata: Some(Struct { fields: [("domain".to_owned(), domain)].into() }),
    };
    assert_eq!(response.encode_to_vec(), unhex(RESPONSE));
    assert_eq!(RateLimitResponse::decode(&*unhex(RESPONSE)).unwrap(), response);
}
