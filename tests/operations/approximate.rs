//! Strategies that nodes count on their own: processes on one real Redis, some of which end, are killed, or find no place.

mod calls;
mod cut_off;
#[cfg(feature = "envoy")]
mod envoy;
mod nodes;
mod outage;

use std::time::Duration;
use weir_testing::metrics;

use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{ShouldAllowRequest, ShouldAllowResponse};

use crate::support::command::Serve;
use crate::support::server::ask;
use crate::support::{RedisServer, SOON, eventually, scratch};

type Client = RateLimitServiceClient<Channel>;

/// The length of a window: much longer than a test, so that one is rarely in two.
const WINDOW_SECS: u64 = 1_000_000;

/// A node: a process with this strategy.
struct Node {
    serve: Serve,
    _folder: TempDir,
}

impl Node {
    /// Starts it. Its windows have [`WINDOW_SECS`].
    fn start(redis: &RedisServer, limit: u64, approximate: &str) -> Self {
        Self::on(&format!("nodes: [\"{}\"], deadline: 2s", redis.url()), limit, approximate, "deny")
    }

    /// Starts it on a store with these settings, and with another policy.
    fn on(store: &str, limit: u64, approximate: &str, policy: &str) -> Self {
        let limit = format!("fixed_window: {{ limit: {limit}, window: {WINDOW_SECS}s }}");
        Self::with_limit(store, &limit, approximate, policy)
    }

    /// The same with this limit.
    fn with_limit(store: &str, limit: &str, approximate: &str, policy: &str) -> Self {
        let text = format!(
            "server: {{ admin_service: true, workers: 2 }}
store: {{ redis: {{ {store} }} }}
strategies:
  api:
    on_store_failure: {policy}
    approximate: {approximate}
    limits: [{{ name: each, per: [consumer], {limit} }}]
resources: [{{ match: \"*\", strategy: api }}]
"
        );
        let folder = scratch::dir("approximate-");
        let config = scratch::file(folder.path(), "weir.yaml", text);
        Self { serve: Serve::start(&["--config", config.to_str().unwrap()]), _folder: folder }
    }

    /// Starts it and waits for its place.
    fn with_place(redis: &RedisServer, limit: u64, approximate: &str) -> Self {
        Self::start(redis, limit, approximate).having_its_place()
    }

    /// Waits for its place.
    fn having_its_place(self) -> Self {
        let has_place = || self.metric("weir_approximate_has_place{strategy=\"api\"}") == 1;
        eventually(SOON, "it has a place", has_place);
        self
    }

    async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(self.serve.server.clone()).unwrap();
        endpoint.connect().await.unwrap()
    }

    async fn client(&self) -> Client {
        RateLimitServiceClient::new(self.channel().await)
    }

    /// A metric; 0 if it is not there.
    fn metric(&self, name: &str) -> u64 {
        metrics::find(&self.serve.get("/metrics"), name).unwrap_or(0)
    }

    /// Decisions of the node, and of Redis.
    fn decided(&self) -> (u64, u64) {
        let by = |who| self.metric(&format!("weir_approximate_decisions_total{{by=\"{who}\"}}"));
        (by("node"), by("redis"))
    }
}

/// Does something within one window; again with another consumer, if the window has ended meanwhile.
async fn within_a_window<T>(redis: &RedisServer, does: impl AsyncFn(&str) -> T) -> T {
    let window = || {
        let time: (u64, u64) = redis.query(&["TIME"]);
        time.0 / WINDOW_SECS
    };
    loop {
        let begun = window();
        let found = does(&format!("consumer-{begun}")).await;
        if window() == begun {
            return found;
        }
    }
}

async fn charge(client: &mut Client, consumer: &str, cost: u64) -> ShouldAllowResponse {
    let request = ShouldAllowRequest { cost: Some(cost), ..ask("r", consumer) };
    client.should_allow(request).await.unwrap().into_inner()
}

/// Calls until `denials` calls in a row are denied. Returns how many passed, and all calls.
async fn use_up(mut client: Client, consumer: &str, denials: u32) -> (u64, u64) {
    let (mut passed, mut calls, mut in_a_row) = (0, 0, 0);
    while in_a_row < denials {
        let answer = charge(&mut client, consumer, 1).await;
        assert!(answer.approximate && !answer.degraded, "{answer:?}");
        calls += 1;
        (passed, in_a_row) = if answer.allowed { (passed + 1, 0) } else { (passed, in_a_row + 1) };
    }
    (passed, calls)
}

/// Four callers of each node use up one key at once. Returns how many calls passed, and all calls.
async fn all_use_up(nodes: &[Node], consumer: &str) -> (u64, u64) {
    let mut callers = tokio::task::JoinSet::new();
    for node in nodes {
        for _ in 0..4 {
            let (client, consumer) = (node.client().await, consumer.to_owned());
            callers.spawn(async move { use_up(client, &consumer, 40).await });
        }
    }
    let all = callers.join_all().await;
    all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Decisions of all nodes, and of Redis.
fn all_decided(nodes: &[Node]) -> (u64, u64) {
    nodes.iter().map(Node::decided).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Returns the count of the only key in Redis.
fn counted(redis: &RedisServer) -> u64 {
    let key = redis.keys().into_iter().find(|key| key.contains("}A")).expect("it has a counter");
    redis.query(&["HGET", &key, "c"])
}
