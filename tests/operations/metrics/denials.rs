//! Metrics of denials by limit.

use std::fs;

use weir_config::Config;
use weir_proto::v1::inline_limit::Algorithm;
use weir_proto::v1::{InlineLimit, InlineWindow, ShouldAllowRequest};

use super::{series, value};
use crate::support::server::{Server, ask_under};
use crate::support::{RedisServer, SOON, eventually, scratch};

const CONFIG: &str = "
server: { inline_limits: true }
strategies:
  first: { limits: [{ name: hidden, per: [consumer], fixed_window: { limit: 1, window: 1h }, mode: shadow }, { name: tight, per: [consumer], fixed_window: { limit: 2, window: 1h } }] }
  api:
    limits:
      - { name: each, per: [resource, consumer], fixed_window: { limit: 2, window: 1h } }
      - { name: all, per: [resource], fixed_window: { limit: 5, window: 2h, anchored: true } }
access: { deny: [mallory] }
";

fn denials(page: &str, strategy: &str, limit: &str) -> f64 {
    value(page, &format!("weir_denials_total{{strategy=\"{strategy}\",limit=\"{limit}\"}}"))
}

fn server(store: &str) -> (Server, tempfile::TempDir) {
    let folder = scratch::dir("denials-");
    let file = scratch::file(folder.path(), "weir.yaml", format!("{store}{CONFIG}"));
    (Server::ready(Config::load(&file, &weir::features::overrides()).unwrap()), folder)
}

async fn asks(server: &Server, strategy: &str, consumer: &str, times: usize) {
    let mut client = server.client().await;
    for _ in 0..times {
        client.should_allow(ask_under(strategy, "r", consumer)).await.unwrap();
    }
}

async fn each_limit_counts_its_denials(store: &str) {
    let (server, folder) = server(store);
    let at_start = server.get("/metrics").1;
    asks(&server, "api", "a", 4).await;
    asks(&server, "api", "b", 2).await;
    asks(&server, "api", "c", 4).await;
    asks(&server, "first", "a", 3).await;
    asks(&server, "api", "mallory", 3).await;
    let inline = InlineLimit {
        name: "mine".to_owned(),
        algorithm: Some(Algorithm::FixedWindow(InlineWindow {
            limit: 1,
            window: Some(prost_types::Duration { seconds: 3600, nanos: 0 }),
        })),
        ..Default::default()
    };
    for _ in 0..3 {
        let request = ShouldAllowRequest { inline: Some(inline.clone()), ..ask_under("", "r", "a") };
        server.client().await.should_allow(request).await.unwrap();
    }
    let page = server.get("/metrics").1;
    assert_eq!(series(&at_start), series(&page), "every series is there from the start");
    // `c` has one call of the five left; then both deny, and `all` denies longer.
    assert_eq!([denials(&page, "api", "each"), denials(&page, "api", "all")], [2.0, 3.0]);
    assert_eq!([denials(&page, "first", "hidden"), denials(&page, "first", "tight")], [0.0, 1.0]);
    assert_eq!(denials(&page, "inline", "inline"), 2.0);
    let listed = "weir_decisions_total{strategy=\"api\",outcome=\"deny_list\"}";
    assert_eq!(value(&page, listed), 3.0, "a list is no limit");
    // A reload that moves the strategies keeps the counts.
    fs::write(folder.path().join("weir.yaml"), format!("{store}{}", CONFIG.replace("  first:", "  again:")))
        .unwrap();
    eventually(SOON, "the file is read", || {
        server.get("/metrics").1.contains("weir_denials_total{strategy=\"again\",limit=\"tight\"} 0")
    });
    asks(&server, "api", "a", 1).await;
    asks(&server, "again", "a", 4).await;
    let page = server.get("/metrics").1;
    assert_eq!([denials(&page, "api", "each"), denials(&page, "api", "all")], [2.0, 4.0]);
    assert_eq!([denials(&page, "first", "tight"), denials(&page, "again", "tight")], [1.0, 2.0]);
}

#[tokio::test]
async fn each_limit_counts_its_denials_on_memory() {
    each_limit_counts_its_denials("").await;
}

#[tokio::test]
async fn each_limit_counts_its_denials_on_redis() {
    let redis = RedisServer::start();
    each_limit_counts_its_denials(&format!("store: {{ redis: {{ nodes: ['{}'] }} }}\n", redis.url())).await;
}
