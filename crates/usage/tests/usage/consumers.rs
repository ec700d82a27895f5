use std::collections::HashMap;

use prost_types::Duration;
use tonic::Code;
use weir_config::Config;
use weir_proto::v1::{ConsumerOutcome, ShouldAllowBatchRequest, ShouldAllowRequest, TopConsumersRequest};
use weir_usage::{UsageConfig, with_usage};

use super::usage_of;
use crate::support::server::{Server, ask_under, config};

fn sampling(sample: u32) -> Config {
    with_usage(config(), UsageConfig { sample, ..UsageConfig::default() })
}

/// Calls of as many consumers as `calls`, spread as Zipf has it: the first consumer has the most.
fn zipf(calls: usize) -> Vec<ShouldAllowRequest> {
    let harmonic: f64 = (1..=calls).map(|rank| 1.0 / rank as f64).sum();
    let mut random = 7_u64;
    let mut consumer = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut rest = (random >> 11) as f64 / (1_u64 << 53) as f64 * harmonic;
        let rank = (1..calls).find(|rank| {
            rest -= 1.0 / *rank as f64;
            rest <= 0.0
        });
        format!("c{}", rank.unwrap_or(calls))
    };
    (0..calls).map(|_| ask_under("burst", "x", &consumer())).collect()
}

/// Asks them in batches. Returns how many calls of each consumer were allowed, and how many denied.
async fn run(server: &Server, requests: Vec<ShouldAllowRequest>) -> HashMap<(String, bool), u64> {
    let mut client = server.client().await;
    let mut counts = HashMap::new();
    for requests in requests.chunks(500) {
        let batch = ShouldAllowBatchRequest { requests: requests.to_vec() };
        let results = client.should_allow_batch(batch).await.unwrap().into_inner().results;
        for (request, result) in requests.iter().zip(results) {
            let Some(weir_proto::v1::should_allow_result::Result::Response(answer)) = result.result else {
                panic!("an answer: {result:?}")
            };
            *counts.entry((request.consumer.clone(), answer.allowed)).or_default() += 1;
        }
    }
    counts
}

#[tokio::test]
async fn estimates_are_within_the_error_that_they_state() {
    for sample in [1, 16] {
        let server = Server::start(sampling(sample));
        let mut usage = usage_of(&server).await;
        let counts = run(&server, zipf(20_000)).await;
        for (outcome, allowed) in [(ConsumerOutcome::Allowed, true), (ConsumerOutcome::Denied, false)] {
            let request = TopConsumersRequest {
                strategy: "burst".to_owned(),
                outcome: outcome.into(),
                n: Some(256),
                ..TopConsumersRequest::default()
            };
            let answer = usage.top_consumers(request).await.unwrap().into_inner();
            assert_eq!(answer.sample, sample);
            assert!(answer.consumers.is_sorted_by(|one, next| one.calls >= next.calls));
            let mut known = Vec::new();
            for one in answer.consumers {
                assert_eq!((one.allowed, &*one.strategy), (allowed, "burst"));
                let exact = counts.get(&(one.consumer.clone(), allowed)).copied().unwrap_or(0);
                let least = one.calls.saturating_sub(one.error + one.sampling_error);
                assert!(least <= exact && exact <= one.calls + one.sampling_error, "{exact}, {one:?}");
                assert_eq!(one.sampling_error == 0, sample == 1);
                known.push(one.consumer);
            }
            if !allowed {
                assert_eq!(known[0], "c1", "the consumer with the most calls by far");
            }
            for ((consumer, _), exact) in counts.iter().filter(|((_, of), _)| *of == allowed) {
                assert!(
                    known.contains(consumer) || *exact <= answer.missing_at_most,
                    "{consumer} has {exact}"
                );
            }
        }
    }
}

#[tokio::test]
async fn without_a_sample_nobody_is_known() {
    let server = Server::start(sampling(0));
    run(&server, zipf(100)).await;
    let answer =
        usage_of(&server).await.top_consumers(TopConsumersRequest::default()).await.unwrap().into_inner();
    assert_eq!((answer.consumers.len(), answer.sample, answer.calls), (0, 0, 0));
}

#[tokio::test]
async fn what_cannot_be_answered_names_the_field_and_the_bound() {
    let server = Server::start(config());
    let mut usage = usage_of(&server).await;
    let window = |seconds| Some(Duration { seconds, nanos: 0 });
    for (request, message) in [
        (
            TopConsumersRequest { window: window(61), ..Default::default() },
            "window is 61000ms: it must be 60s or 3600s",
        ),
        (
            TopConsumersRequest { window: window(-1), ..Default::default() },
            "window is -1 s and 0 ns: it must be 60s or 3600s",
        ),
        (TopConsumersRequest { n: Some(0), ..Default::default() }, "n is 0: it must be 1 to 256"),
        (TopConsumersRequest { n: Some(257), ..Default::default() }, "n is 257: it must be 1 to 256"),
        (
            TopConsumersRequest { outcome: 3, ..Default::default() },
            "outcome is 3: it must be 0 to 2: ALLOWED, DENIED, or 0 for both",
        ),
    ] {
        let status = usage.top_consumers(request).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, message));
    }
}
