//! `envoy.all_or_none` under many callers at once: what a denied request charges is nothing, also in the middle of a race.

use futures_util::future::join_all;

use super::conformance::all_or_none;
use super::notation::request;
use super::{client, serve};
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;

weir_testing::on_every_store!(denied_requests_leave_no_trace);

async fn denied_requests_leave_no_trace(store: weir_config::StoreConfig) {
    const CALLS: usize = 100;
    let server = serve(store, all_or_none());
    let client = client(&server).await;
    // The order of the descriptors is no matter.
    let texts = ["another [a=race]@10/DAY [b=race]@1000/DAY", "another [b=race]@1000/DAY [a=race]@10/DAY"];
    let calls = (0..CALLS).map(|call| {
        let mut client = client.clone();
        async move { client.should_rate_limit(request(texts[call % 2])).await.unwrap().into_inner() }
    });
    let answers = join_all(calls).await;
    let passed = answers.iter().filter(|answer| answer.overall_code() == Code::Ok).count();
    assert_eq!(passed, 10);
    let mut client = client.clone();
    let left = client.should_rate_limit(request("another [b=race]@1000/DAY!0")).await.unwrap().into_inner();
    assert_eq!(left.statuses[0].limit_remaining, 990, "denied requests were charged");
}
