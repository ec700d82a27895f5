//! Any request gets an answer or a clear refusal, never a panic. Fixed windows count like a model of three lines.

use std::cell::Cell;
use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tonic::Code;
use weir_envoy::settings::EnvoyConfig;
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{Entry, RateLimitOverride};
use weir_proto::envoy::service::ratelimit::v3::RateLimitRequest;

use super::notation::{answer, request};
use super::{Client, client, memory, serve};

/// Any request gets one status per descriptor, or is refused for what it holds.
#[test]
fn any_request_is_answered_or_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server =
        serve(memory(), EnvoyConfig { headers: true, dynamic_metadata: true, ..EnvoyConfig::default() });
    let mut client = runtime.block_on(client(&server));
    let mut runner = TestRunner::new(Config { cases: 512, failure_persistence: None, ..Config::default() });
    let result = runner.run(&any_request(), |asked| {
        let (mut client, count) = (client.clone(), asked.descriptors.len());
        match runtime.block_on(client.should_rate_limit(asked)) {
            Ok(answered) => prop_assert_eq!(answered.get_ref().statuses.len(), count),
            Err(status) => prop_assert_eq!(status.code(), Code::InvalidArgument, "{}", status),
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    // None of them took a worker with it.
    let observed = runtime.block_on(ask(&mut client, request("another [key2=after]")));
    assert_eq!(observed, "OK | OK 19 of 20/MINUTE 60s");
}

pub(super) fn any_request() -> impl Strategy<Value = RateLimitRequest> {
    let domain = prop_oneof![Just("test-domain"), Just("w"), Just("st"), Just("rl"), Just("nope"), Just("")];
    let descriptors = prop::collection::vec(any_descriptor(), 0..12);
    (domain, descriptors, any::<u32>()).prop_map(|(domain, descriptors, hits_addend)| RateLimitRequest {
        domain: domain.to_owned(),
        descriptors,
        hits_addend,
    })
}

fn any_descriptor() -> impl Strategy<Value = RateLimitDescriptor> {
    let known =
        prop_oneof![Just("key1"), Just("key2"), Just("wild"), Just("files"), Just("foo"), Just("bar")];
    let key = prop_oneof![known.prop_map(str::to_owned), ".{0,20}"];
    let value = prop_oneof![Just("banned".to_owned()), ".{0,40}", "x{400,700}"];
    let entry = (key, value).prop_map(|(key, value)| Entry { key, value });
    let unit = prop_oneof![-2..10, any::<i32>()];
    let limit = (any::<u32>(), unit)
        .prop_map(|(requests_per_unit, unit)| RateLimitOverride { requests_per_unit, unit });
    let entries = prop::collection::vec(entry, 0..70);
    let hits = prop_oneof![Just(0), any::<u64>(), Just(u64::MAX), Just(1 << 63)];
    (entries, prop::option::weighted(0.2, limit), prop::option::of(hits), any::<bool>()).prop_map(
        |(entries, limit, hits_addend, is_negative_hits)| RateLimitDescriptor {
            entries,
            limit,
            hits_addend,
            is_negative_hits,
        },
    )
}

#[derive(Debug, Clone, Copy)]
enum Hits {
    Tried(u32),
    Done(u64),
    Back(u64),
}

/// Charges that fit or cost nothing, debts, and refunds, against plain counting.
#[test]
fn windows_count_as_the_model_does() {
    const LIMIT: u64 = 20;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = serve(memory(), EnvoyConfig::default());
    let client = runtime.block_on(client(&server));
    let hits = prop_oneof![
        (1..25_u32).prop_map(Hits::Tried),
        (0..25_u64).prop_map(Hits::Done),
        (0..25_u64).prop_map(Hits::Back),
    ];
    let trace = prop::collection::vec((0..3, hits), 1..60);
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    let runs = Cell::new(0);
    let result = runner.run(&trace, |trace| {
        let (mut client, run) = (client.clone(), runs.replace(runs.get() + 1));
        let mut counts = HashMap::<i32, u64>::new();
        for (key, hits) in trace {
            let count = counts.entry(key).or_default();
            let (asked, ok) = match hits {
                Hits::Tried(hits) => {
                    let ok = *count + u64::from(hits) <= LIMIT;
                    *count += if ok { u64::from(hits) } else { 0 };
                    (format!("+{hits}"), ok)
                }
                Hits::Done(hits) => {
                    let ok = *count + hits <= LIMIT;
                    // A debt is at most as much as the limit, by default.
                    *count += hits.min(2 * LIMIT - *count);
                    (format!("!{hits}"), ok)
                }
                Hits::Back(hits) => {
                    *count = count.saturating_sub(hits);
                    (format!("!{hits}~"), true)
                }
            };
            let left = if ok { LIMIT.saturating_sub(*count) } else { 0 };
            let word = if asked.starts_with('+') { format!(" {asked}") } else { asked };
            let observed =
                runtime.block_on(ask(&mut client, request(&format!("another [key2={run}-{key}]{word}"))));
            let code = if ok { "OK" } else { "OVER" };
            prop_assert_eq!(observed, format!("{code} | {code} {left} of 20/MINUTE 60s"), "{:?}", hits);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn what_is_too_much_is_refused_by_name() {
    let server = serve(memory(), EnvoyConfig::default());
    let mut client = client(&server).await;
    let observed = ask(&mut client, request(&format!("another {}", "[k=v] ".repeat(10_000)))).await;
    assert_eq!(observed, "InvalidArgument: descriptors is more than 1000 entries: there may be at most 1000");
    let observed = ask(&mut client, request(&format!("another [{}]", "k=v,".repeat(65)))).await;
    assert_eq!(
        observed,
        "InvalidArgument: descriptors.entries is more than 64 entries: there may be at most 64"
    );
    let observed = ask(&mut client, request(&format!("{} [k=v]", "d".repeat(65_537)))).await;
    assert!(observed.starts_with("InvalidArgument: domain is \"ddd"), "{observed}");
    let observed = ask(&mut client, request(&format!("another [{}=v]", "k".repeat(65_537)))).await;
    assert!(observed.starts_with("InvalidArgument: descriptors.entries.key is \"kkk"), "{observed}");
    let observed =
        ask(&mut client, request(&format!("another {}", "[k=vvvvvvvvvvvvvvvv] ".repeat(60_000)))).await;
    assert!(observed.starts_with("ResourceExhausted: "), "{observed}");
    assert_eq!(ask(&mut client, request("another [key2=v]")).await, "OK | OK 19 of 20/MINUTE 60s");
}

/// The sentences are the reference's. The first word of both is `rate`, which once stood in the details as the field's name.
#[tokio::test]
async fn what_is_missing_is_named_in_the_details() {
    let server = serve(memory(), EnvoyConfig::default());
    let mut client = client(&server).await;
    for (asked, field) in [("\"\" [key2=v]", "domain"), ("another", "descriptors")] {
        let refused = client.should_rate_limit(request(asked)).await.unwrap_err();
        // The field's name with its tag and its length.
        let named = [&[10, field.len() as u8], field.as_bytes()].concat();
        let found = refused.details().windows(named.len()).any(|bytes| bytes == named);
        assert!(found, "{field}: {:?}", String::from_utf8_lossy(refused.details()));
    }
}

async fn ask(client: &mut Client, asked: RateLimitRequest) -> String {
    answer(&client.should_rate_limit(asked).await.map(tonic::Response::into_inner))
}
