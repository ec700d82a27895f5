//! Rights that bound what usage shows.

use prost::Message as _;
use weir_proto::v1;

use super::super::client::Client;
use super::super::{SHOULD_ALLOW, TRANSPORTS, unary};
use super::Guarded;
use super::lists::code;
use crate::support::server::ask;

/// Neither totals nor names of consumers that the lists leave out.
#[tokio::test]
async fn usage_shows_only_what_the_lists_permit() {
    let rules = "authorize:
  - { callers: [token:admin], may: [decide, usage] }
  - { callers: [token:burst], may: [usage], strategies: [burst] }
  - { callers: [token:anna], may: [usage], consumers: [anna] }
";
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin", "burst", "anna"], "", rules);
        let mut client = guarded.client().await;
        for (resource, consumer) in [("burst/x", "anna"), ("burst/x", "bob"), ("other/x", "anna")] {
            // The consumer of one call in sixteen is counted.
            for _ in 0..64 {
                let call = unary(SHOULD_ALLOW, &ask(resource, consumer));
                assert_eq!(code(&mut client, &guarded, "admin", call).await, 0, "{transport:?}");
            }
        }
        let strategies = async |client: &mut Client, holder: &str| {
            let call = unary("/weir.v1.UsageService/GetUsage", &v1::GetUsageRequest::default());
            let outcome = client.call(&call.with("authorization", &guarded.bearer(holder))).await;
            let answer = v1::GetUsageResponse::decode(&outcome.body[5..]).unwrap();
            let mut names: Vec<String> = answer.series.into_iter().map(|one| one.strategy).collect();
            names.dedup();
            names
        };
        assert_eq!(strategies(&mut client, "admin").await, ["burst", "other"], "{transport:?}");
        assert_eq!(strategies(&mut client, "burst").await, ["burst"], "{transport:?}");
        // Totals of all consumers would count those that the list leaves out.
        assert!(strategies(&mut client, "anna").await.is_empty(), "{transport:?}");
        let consumers = async |client: &mut Client, holder: &str| {
            let call = unary("/weir.v1.UsageService/TopConsumers", &v1::TopConsumersRequest::default());
            let outcome = client.call(&call.with("authorization", &guarded.bearer(holder))).await;
            let answer = v1::TopConsumersResponse::decode(&outcome.body[5..]).unwrap();
            let names = answer.consumers.into_iter().map(|one| (one.strategy, one.consumer));
            let mut names: Vec<(String, String)> = names.collect();
            names.sort();
            names.dedup();
            names
        };
        let named = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(strategy, name)| ((*strategy).to_owned(), (*name).to_owned())).collect()
        };
        let all = consumers(&mut client, "admin").await;
        assert_eq!(all, named(&[("burst", "anna"), ("burst", "bob"), ("other", "anna")]), "{transport:?}");
        let of_burst = consumers(&mut client, "burst").await;
        assert_eq!(of_burst, named(&[("burst", "anna"), ("burst", "bob")]), "{transport:?}");
        let of_anna = consumers(&mut client, "anna").await;
        assert_eq!(of_anna, named(&[("burst", "anna"), ("other", "anna")]), "{transport:?}");
    }
}
