//! Limits with costs of their own while Redis cannot answer: a call is admitted without a hold.

use tonic::Code;
use weir_config::{Config, ConfigOverrides};
use weir_proto::v1::{Cost, Reason, SettleRequest, ShouldAllowRequest};

use crate::support::RedisServer;
use crate::support::server::{Server, ask};

fn output(cost: u64, at_least: Option<u64>) -> ShouldAllowRequest {
    let costs = [("output".to_owned(), Cost { cost, at_least })];
    ShouldAllowRequest { costs: costs.into(), ..ask("r", "c") }
}

fn held(id: &str, cost: u64, at_least: Option<u64>) -> ShouldAllowRequest {
    let hold_for = Some(prost_types::Duration { seconds: 30, nanos: 0 });
    ShouldAllowRequest { id: id.to_owned(), hold_for, ..output(cost, at_least) }
}

#[tokio::test]
async fn a_node_admits_its_part_without_a_hold() {
    let redis = RedisServer::start();
    let text = format!(
        "store: {{ redis: {{ nodes: [\"{}\"], deadline: 100ms, denials_max_age: 0s }} }}
strategies:
  llm:
    hold: {{ max: 1m }}
    on_store_failure: {{ local: {{ share: 1/2 }} }}
    limits:
      - {{ name: calls, per: [consumer], cost: 1, fixed_window: {{ limit: 10, window: 1w, anchored: true }} }}
      - {{ name: output, per: [consumer], cost: output, fixed_window: {{ limit: 100, window: 1w, anchored: true }} }}
resources: [{{ match: \"*\", strategy: llm }}]
",
        redis.url()
    );
    let server = Server::ready(Config::parse(&text, "weir.yaml", &ConfigOverrides::default()).unwrap());
    let mut client = server.client().await;
    let first = client.should_allow(held("a", 40, None)).await.unwrap().into_inner();
    assert!(first.allowed && !first.degraded && first.held_for.is_some(), "{first:?}");
    redis.kill();
    let own = client.should_allow(held("b", 30, None)).await.unwrap().into_inner();
    assert_eq!((own.allowed, own.degraded, own.local), (true, true, true), "{own:?}");
    assert_eq!((own.held_for, own.reason(), own.remaining), (None, Reason::StoreFailure, None));
    let limits = |answer: &weir_proto::v1::ShouldAllowResponse| -> Vec<_> {
        answer.limits.iter().map(|one| (one.limit, one.granted, one.remaining, one.held)).collect()
    };
    assert_eq!(limits(&own), [(5, 1, 4, 0), (50, 30, 20, 0)]);
    let rest = client.should_allow(held("c", 30, Some(1))).await.unwrap().into_inner();
    assert_eq!(limits(&rest), [(5, 1, 3, 0), (50, 20, 0, 0)]);
    let denied = client.should_allow(output(1, None)).await.unwrap().into_inner();
    assert_eq!((denied.allowed, denied.local, &*denied.denied_by), (false, true, &["output".to_owned()][..]));
    assert!(denied.retry_after.is_some() && denied.denial_valid_for.is_none(), "{denied:?}");
    // What happens once needs the store.
    let once = ShouldAllowRequest { id: "d".to_owned(), ..output(1, None) };
    assert_eq!(client.should_allow(once).await.unwrap_err().code(), Code::Unavailable);
    let settle = SettleRequest {
        resource: "r".to_owned(),
        consumer: "c".to_owned(),
        id: "b".to_owned(),
        ..SettleRequest::default()
    };
    assert_eq!(client.settle(settle).await.unwrap_err().code(), Code::Unavailable);
    let page = server.get("/metrics").1;
    assert!(
        page.contains("weir_holds_total{strategy=\"llm\",outcome=\"held\"} 1\n"),
        "only the first one is held"
    );
}
