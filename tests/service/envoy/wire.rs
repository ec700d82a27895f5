//! What Envoy sends, to the byte.

use prost::Message as _;
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{Entry, RateLimitOverride};
use weir_proto::envoy::service::ratelimit::v3::RateLimitRequest;
use weir_proto::envoy::r#type::v3::RateLimitUnit;

use crate::support::envoy::EnvoyProcess;
use crate::support::grpc::unhex;
use crate::support::{SOON, eventually_async};

use super::recorder::Recorder;

/// Captured from Envoy with [`Recorder`] in the place of Weir, by the calls of this very test.
const CAPTURED: &str = include_str!("../../envoy/requests.txt");

/// The captured messages: example, path, and in order what Envoy asked.
fn captured() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let mut all = Vec::new();
    for line in CAPTURED.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(' ') {
            Some((example, path)) => all.push((example, path, Vec::new())),
            None => all.last_mut().expect("messages come after their path").2.push(line),
        }
    }
    assert!(all.iter().all(|(.., messages)| !messages.is_empty()));
    all
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// So what the decoding is tested with is what Envoy sends, also after an update of Envoy.
#[tokio::test]
async fn envoy_sends_what_was_captured() {
    for (example, path, messages) in captured() {
        let (recorder, service) = Recorder::start();
        let Some(envoy) = EnvoyProcess::start(example, service).await else { return };
        let answer = envoy.client().await.get(path, &[("x-api-key", "bob")]).await;
        assert!(["hello\n", "broken\n"].contains(&answer.body.as_str()), "{path}: {answer:?}");
        let all = async || recorder.requests().len() >= messages.len();
        eventually_async(SOON, "Envoy has asked", all).await;
        let requests: Vec<String> = recorder.requests().iter().map(|request| hex(request)).collect();
        assert_eq!(requests, messages, "{path}");
    }
}

/// A request for the domain of the examples.
fn request(descriptors: &[&RateLimitDescriptor]) -> RateLimitRequest {
    RateLimitRequest {
        domain: "edge".to_owned(),
        descriptors: descriptors.iter().map(|&one| one.clone()).collect(),
        hits_addend: 0,
    }
}

fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |&(key, value): &(&str, &str)| Entry { key: key.to_owned(), value: value.to_owned() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..RateLimitDescriptor::default() }
}

/// Nothing that Envoy sends is lost or taken for something else.
#[test]
fn what_was_captured_is_understood() {
    let address = descriptor(&[("remote_address", "127.0.0.1")]);
    let search = descriptor(&[("route", "search"), ("api_key", "bob")]);
    let tokens = descriptor(&[("tokens", "bob")]);
    let jobs = descriptor(&[("jobs", "bob")]);
    let hits = |hits, of: &RateLimitDescriptor| RateLimitDescriptor { hits_addend: Some(hits), ..of.clone() };
    let refund = RateLimitDescriptor { is_negative_hits: true, ..hits(1, &jobs) };
    let limit = RateLimitOverride { requests_per_unit: 3, unit: RateLimitUnit::Hour.into() };
    let plan = RateLimitDescriptor { limit: Some(limit), ..descriptor(&[("plan", "bob")]) };
    let expected = [
        request(&[&address]),
        request(&[&address, &search]),
        request(&[&hits(0, &tokens)]),
        request(&[&hits(6, &tokens)]),
        request(&[&jobs]),
        request(&[&jobs]),
        request(&[&refund]),
        request(&[&plan]),
    ];
    let messages: Vec<Vec<u8>> =
        captured().into_iter().flat_map(|(.., messages)| messages).map(unhex).collect();
    let decoded: Vec<RateLimitRequest> =
        messages.iter().map(|message| RateLimitRequest::decode(message.as_slice()).unwrap()).collect();
    assert_eq!(decoded, expected);
    assert_eq!(decoded.iter().map(RateLimitRequest::encode_to_vec).collect::<Vec<_>>(), messages);
}
