//! A whole service through an outage of its Redis: alive all the time, ready when it can decide, and
//! every call answered by its strategy's policy meanwhile.

use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use weir_config::{Config, RedisConfig, ServerConfig, StoreConfig, Topology};
use weir_proto::v1::Reason;
use weir_units::Micros;

use crate::support::server::{Server, ask_under, config};
use crate::support::{RedisServer, SOON, eventually, eventually_async, redis_config};

#[tokio::test]
async fn dead_at_start_alive_not_ready_then_recovers() {
    let redis = RedisServer::start();
    redis.kill();
    let server = Server::start(on(&redis));
    eventually(SOON, "alive", || server.get("/livez").0 == 200);
    let (status, reason) = server.get("/readyz");
    assert_eq!(status, 503, "{reason}");
    the_policies_answer(&server).await;
    redis.restart();
    eventually(SOON, "ready once Redis is there", || server.get("/readyz").0 == 200);
    the_store_answers(&server).await;
}

/// A Kubernetes Service without a ready pod answers no call, so a degraded node stays ready.
#[tokio::test]
async fn by_default_a_node_stays_ready_and_says_that_it_is_degraded() {
    let redis = RedisServer::start();
    let on = on(&redis);
    let server_config = ServerConfig { ready_needs_store: false, ..on.server.clone() };
    let server = Server::start(Config { server: server_config, ..on });
    eventually(SOON, "ready", || server.get("/readyz") == (200, "ready\n".to_owned()));
    let mut health = HealthClient::new(server.channel().await);
    redis.kill();
    let degraded = || {
        let (status, body) = server.get("/readyz");
        assert_eq!(status, 200, "{body}");
        let node = redis.url().replace("redis://", "");
        body.starts_with(&format!("degraded: Redis node {node} cannot decide since 20"))
    };
    eventually(SOON, "degraded", degraded);
    assert!(server.get("/readyz").1.contains("what to do: check that Redis runs there"));
    let asked = HealthCheckRequest { service: "weir.v1.RateLimitService".to_owned() };
    assert_eq!(health.check(asked).await.unwrap().get_ref().status(), ServingStatus::Serving);
    the_policies_answer(&server).await;
    redis.restart();
    eventually(SOON, "ready again", || server.get("/readyz") == (200, "ready\n".to_owned()));
    the_store_answers(&server).await;
}

/// A service whose store is given 100 ms.
fn on(redis: &RedisServer) -> Config {
    let (deadline, connect_timeout) = (Micros::from_millis(100), Micros::from_millis(200));
    let store = redis_config(vec![redis.url()], Topology::Single);
    let store = RedisConfig { deadline, connect_timeout, ..store };
    Config { store: StoreConfig::Redis(store), ..config() }
}

async fn the_policies_answer(server: &Server) {
    let mut client = server.client().await;
    for (strategy, allowed) in [("open", true), ("closed", false)] {
        // Redis comes back only after that; `failure.rs` has how long the store takes to give up.
        let answer = client.should_allow(ask_under(strategy, "r", "c"));
        let answer = tokio::time::timeout(SOON, answer).await.expect("an answer without Redis");
        let answer = answer.unwrap().into_inner();
        assert_eq!((answer.allowed, answer.degraded), (allowed, true), "{strategy}");
        assert_eq!(answer.reason(), Reason::StoreFailure);
        assert_eq!((answer.limit, answer.remaining), (None, None));
        assert_eq!((answer.retry_after, answer.reset_after), (None, None));
    }
    let error = client.should_allow(ask_under("burst", "r", "c")).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
}

async fn the_store_answers(server: &Server) {
    let mut client = server.client().await;
    let decided = async || match client.should_allow(ask_under("closed", "r", "c")).await {
        Ok(answer) => !answer.into_inner().degraded,
        Err(_) => false,
    };
    eventually_async(SOON, "the workers have found Redis again", decided).await;
}
