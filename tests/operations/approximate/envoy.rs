//! Rules of Envoy that nodes count on their own, as `envoy.rules` says.

use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{Entry, RateLimitOverride};
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code as Overall;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient as EnvoyClient;
use weir_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use weir_testing::metrics;

use super::*;

/// A process with a rule for the key `k`, whose windows have [`WINDOW_SECS`], and what a change of its file needs.
struct EnvoyNode {
    node: Node,
    redis: String,
}

impl EnvoyNode {
    /// Starts it under this entry, and waits for its place.
    fn start(redis: &RedisServer, limit: u64, entry: &str) -> Self {
        let folder = scratch::dir("approximate-");
        std::fs::create_dir(folder.path().join("envoy")).unwrap();
        let config = crate::support::scratch::file(
            folder.path(),
            "weir.yaml",
            Self::text(&folder, &redis.url(), entry),
        );
        let rule = format!(
            "rate_limit: {{ unit: second, requests_per_unit: {limit}, unit_multiplier: {WINDOW_SECS} }}"
        );
        let file = format!("domain: d\ndescriptors: [{{ key: k, {rule} }}]\n");
        std::fs::write(folder.path().join("envoy/d.yaml"), file).unwrap();
        let serve = Serve::start(&["--config", config.to_str().unwrap()]);
        let node = Node { serve, _folder: folder };
        let own = Self { node, redis: redis.url() };
        eventually(SOON, "it has a place", || own.has_place() == Some(1));
        own
    }

    fn text(folder: &TempDir, redis: &str, entry: &str) -> String {
        let envoy = folder.path().join("envoy");
        format!(
            "server: {{ workers: 2 }}
store: {{ redis: {{ nodes: [\"{redis}\"], deadline: 2s }} }}
envoy: {{ config: {envoy:?}, rules: [{entry}] }}
"
        )
    }

    /// Writes its file with another entry.
    fn change(&self, entry: &str) {
        let folder = &self.node._folder;
        std::fs::write(folder.path().join("weir.yaml"), Self::text(folder, &self.redis, entry)).unwrap();
    }

    /// Returns 1 if the node has its place, and `None` if it counts nothing on its own.
    fn has_place(&self) -> Option<u64> {
        let page = self.node.serve.get("/metrics");
        metrics::find(&page, "weir_approximate_has_place{strategy=\"envoy\"}")
    }

    async fn envoy(&self) -> EnvoyClient<Channel> {
        EnvoyClient::new(self.node.channel().await)
    }
}

/// A descriptor of one value.
fn descriptor(value: &str) -> RateLimitDescriptor {
    let entry = Entry { key: "k".to_owned(), value: value.to_owned() };
    RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() }
}

async fn asked(client: &mut EnvoyClient<Channel>, descriptor: RateLimitDescriptor) -> RateLimitResponse {
    let request = RateLimitRequest { domain: "d".to_owned(), descriptors: vec![descriptor], hits_addend: 1 };
    client.should_rate_limit(request).await.unwrap().into_inner()
}

async fn passes(client: &mut EnvoyClient<Channel>, value: &str) -> bool {
    asked(client, descriptor(value)).await.overall_code() == Overall::Ok
}

/// Returns the count in Redis of the only key of a rule that nodes count.
fn counted_of_envoy(redis: &RedisServer) -> u64 {
    let is_counter = |key: &String| key.contains("}A");
    let key = redis.keys().into_iter().find(is_counter).expect("it has a counter");
    redis.query(&["HGET", &key, "c"])
}

/// Two nodes, with two callers each, use up the limit of one value.
#[tokio::test]
async fn a_rule_keeps_to_the_bound_and_costs_few_calls() {
    const LIMIT: u64 = 400;
    let redis = RedisServer::start();
    let entry = "{ domain: d, path: k, approximate: { max_over: 20, nodes: 2, sync: 10s } }";
    let nodes = [EnvoyNode::start(&redis, LIMIT, entry), EnvoyNode::start(&redis, LIMIT, entry)];
    let passed = within_a_window(&redis, async |value: &str| {
        let mut callers = tokio::task::JoinSet::new();
        for node in nodes.iter().chain(&nodes) {
            let (mut client, value) = (node.envoy().await, value.to_owned());
            callers.spawn(async move {
                let (mut passed, mut in_a_row) = (0, 0);
                while in_a_row < 40 {
                    let passes = passes(&mut client, &value).await;
                    (passed, in_a_row) = if passes { (passed + 1, 0) } else { (passed, in_a_row + 1) };
                }
                passed
            });
        }
        callers.join_all().await.into_iter().sum::<u64>()
    })
    .await;
    let decided = nodes.each_ref().map(|node| node.node.decided());
    let (by_node, by_redis) = (decided[0].0 + decided[1].0, decided[0].1 + decided[1].1);
    println!(
        "{} above the limit of {LIMIT}; {by_node} decided by nodes, {by_redis} by Redis",
        passed - LIMIT
    );
    assert!((LIMIT..=LIMIT + 20).contains(&passed), "{passed}");
    assert!(by_node > 4 * by_redis, "a share of 20 saves most calls: {by_node} {by_redis}");
    for node in &nodes {
        assert_eq!(node.node.metric("weir_approximate_max_over{strategy=\"envoy\"}"), 20);
        assert!(node.node.metric("weir_approximate_over_admitted{strategy=\"envoy\"}") <= 20);
    }
}

/// Bills and hits that are given back are of the counter in Redis. A limit of the request is counted exactly, beside it.
#[tokio::test]
async fn bills_refunds_and_limits_of_requests() {
    let redis = RedisServer::start();
    let entry = "{ domain: d, path: k, max_debt: 4, approximate: { max_over: 8, nodes: 2, sync: 10s } }";
    let node = EnvoyNode::start(&redis, 12, entry);
    let mut client = node.envoy().await;
    for left in (7..12).rev() {
        let answer = asked(&mut client, descriptor("v")).await;
        assert_eq!((answer.overall_code(), answer.statuses[0].limit_remaining), (Overall::Ok, left));
    }
    let bill = |hits| RateLimitDescriptor { hits_addend: Some(hits), ..descriptor("v") };
    assert_eq!(asked(&mut client, bill(3)).await.overall_code(), Overall::Ok);
    assert_eq!(counted_of_envoy(&redis), 8, "what the node owed was counted with it");
    let back = RateLimitDescriptor { is_negative_hits: true, ..bill(2) };
    assert_eq!(asked(&mut client, back).await.overall_code(), Overall::Ok);
    assert_eq!(counted_of_envoy(&redis), 6);
    let limit = RateLimitOverride { requests_per_unit: 3, unit: 6 };
    let given = RateLimitDescriptor { limit: Some(limit), ..descriptor("v") };
    let mut passed = 0;
    for _ in 0..4 {
        passed += u32::from(asked(&mut client, given.clone()).await.overall_code() == Overall::Ok);
    }
    assert_eq!((passed, counted_of_envoy(&redis)), (3, 6));
    let mut rest = 0;
    while passes(&mut client, "v").await {
        rest += 1;
    }
    assert_eq!(rest, 6);
    asked(&mut client, bill(100)).await;
    assert_eq!(counted_of_envoy(&redis), 16, "bills stop at the bound of the debt");
}

/// The entry changes while it serves: the place comes and goes with it.
#[tokio::test]
async fn a_reload_takes_and_frees_the_place() {
    let redis = RedisServer::start();
    let entry = "{ domain: d, path: k, approximate: { max_over: 8, nodes: 2, sync: 10s } }";
    let node = EnvoyNode::start(&redis, 12, entry);
    node.change("");
    eventually(SOON, "it counts exactly", || node.has_place().is_none());
    let mut client = node.envoy().await;
    assert!(passes(&mut client, "v").await);
    assert_eq!(node.node.decided(), (0, 0));
    node.change(&entry.replace("max_over: 8", "max_over: 5"));
    eventually(SOON, "it has a place again", || node.has_place() == Some(1));
    assert_eq!(node.node.metric("weir_approximate_max_over{strategy=\"envoy\"}"), 5);
    assert!(passes(&mut client, "v").await);
    assert_eq!(node.node.decided(), (0, 1));
}
