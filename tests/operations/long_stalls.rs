//! A process that does not run for a while, beside a Redis that answers: no breaker opens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use weir_testing::metrics;

use tempfile::TempDir;
use tokio::task::JoinSet;
use weir_proto::v1::ShouldAllowRequest;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;

use crate::support::command::Serve;
use crate::support::{RedisServer, SOON, eventually, scratch};

/// Callers at once, each with a connection of its own for eight.
const CALLERS: usize = 128;

/// A stop of 200 ms was 1,765 timeouts of 50 ms once, and then a second in which the breaker refused everything.
#[tokio::test]
async fn a_process_that_is_stopped_opens_no_breaker() {
    let mut node = Node::start();
    let callers = node.callers();
    for ms in [200, 20, 1_000, 60, 200] {
        node.wait_for_decisions().await;
        node.server.process.freeze();
        tokio::time::sleep(Duration::from_millis(ms)).await;
        node.server.process.thaw();
    }
    node.wait_for_decisions().await;
    node.has_opened_nothing();
    drop(callers);
}

/// As when a host has much more to do than cores.
#[tokio::test]
async fn busy_cores_open_no_breaker() {
    let mut node = Node::start();
    let callers = node.callers();
    let burns = Arc::new(AtomicBool::new(true));
    let threads: Vec<_> = (0..16)
        .map(|_| {
            let burns = Arc::clone(&burns);
            thread::spawn(move || while burns.load(Relaxed) {})
        })
        .collect();
    for _ in 0..5 {
        node.wait_for_decisions().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    burns.store(false, Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    node.wait_for_decisions().await;
    node.has_opened_nothing();
    drop(callers);
}

/// A server on Redis, with the deadline of the default.
struct Node {
    server: Serve,
    decided: Arc<AtomicU64>,
    by_policy: Arc<AtomicU64>,
    _redis: RedisServer,
    _directory: TempDir,
}

impl Node {
    fn start() -> Self {
        let redis = RedisServer::start();
        let directory = scratch::dir("stalls");
        let text = format!(
            "store:
  key_secret: of this test
  redis: {{ nodes: ['{}'] }}
strategies:
  calls:
    limits: [{{ name: each, per: [consumer], token_bucket: {{ rate: 1000000/s, burst: 1000000 }} }}]
    on_store_failure: deny
resources: [{{ match: '*', strategy: calls }}]
",
            redis.url()
        );
        let file = scratch::file(directory.path(), "weir.yaml", text);
        let server = Serve::start(&["--config", file.to_str().unwrap()]);
        Self {
            server,
            decided: Arc::default(),
            by_policy: Arc::default(),
            _redis: redis,
            _directory: directory,
        }
    }

    /// Callers that ask again and again, until they are dropped.
    fn callers(&self) -> JoinSet<()> {
        let mut callers = JoinSet::new();
        let channel =
            || tonic::transport::Channel::from_shared(self.server.server.clone()).unwrap().connect_lazy();
        let channels: Vec<_> = (0..CALLERS / 8).map(|_| channel()).collect();
        for number in 0..CALLERS {
            let mut client = RateLimitServiceClient::new(channels[number / 8].clone());
            let (decided, by_policy) = (Arc::clone(&self.decided), Arc::clone(&self.by_policy));
            callers.spawn(async move {
                loop {
                    let consumer = format!("c{number}");
                    let ask = ShouldAllowRequest { resource: "r".to_owned(), consumer, ..Default::default() };
                    let answer = client.should_allow(ask).await.unwrap().into_inner();
                    if answer.degraded { &by_policy } else { &decided }.fetch_add(1, Relaxed);
                }
            });
        }
        callers
    }

    /// Waits until Redis has decided some thousand calls more.
    async fn wait_for_decisions(&self) {
        let before = self.decided.load(Relaxed);
        crate::support::eventually_async(SOON, "Redis decides", async || {
            self.decided.load(Relaxed) > before + 2_000
        })
        .await;
    }

    fn has_opened_nothing(&mut self) {
        let (decided, by_policy) = (self.decided.load(Relaxed), self.by_policy.load(Relaxed));
        println!("Redis decided {decided} calls, the policy {by_policy}");
        let opened = |page: &str| -> String { metrics::value(page, "weir_store_breaker_openings_total") };
        eventually(SOON, "its metrics", || {
            self.server.get("/metrics").contains("weir_store_breaker_openings_total")
        });
        assert_eq!(opened(&self.server.get("/metrics")), "0", "{by_policy} of {decided} calls by the policy");
    }
}
