//! A whole service through an outage of its Redis: alive all the time, ready when it can decide, and
//! every call answered by its strategy's policy before its deadline.

use std::time::{Duration, Instant};

use tonic::Code;
use weir::config::{Config, RedisConfig, StoreConfig, Topology};
use weir::proto::v1::Reason;
use weir::units::Micros;

use crate::support::server::{Server, ask_under, config};
use crate::support::{RedisServer, eventually, redis_config};

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn dead_at_start_alive_not_ready_then_recovers() {
    let redis = RedisServer::start();
    redis.kill();
    let server = Server::start(on(&redis));
    eventually(PATIENCE, "alive", || server.get("/livez").0 == 200);
    let (status, reason) = server.get("/readyz");
    assert_eq!(status, 503, "{reason}");
    the_policies_answer(&server).await;
    redis.restart();
    eventually(PATIENCE, "ready once Redis is there", || server.get("/readyz").0 == 200);
    the_store_answers(&server).await;
}

#[tokio::test]
async fn killed_then_restarted() {
    let redis = RedisServer::start();
    let server = Server::start(on(&redis));
    eventually(PATIENCE, "ready", || server.get("/readyz").0 == 200);
    the_store_answers(&server).await;
    redis.kill();
    the_policies_answer(&server).await;
    eventually(PATIENCE, "not ready", || server.get("/readyz").0 == 503);
    assert_eq!(server.get("/livez").0, 200, "an orchestrator must not restart it for that");
    redis.restart();
    eventually(PATIENCE, "ready again", || server.get("/readyz").0 == 200);
    the_store_answers(&server).await;
}

#[tokio::test]
async fn frozen_then_thawed() {
    let redis = RedisServer::start();
    let server = Server::start(on(&redis));
    eventually(PATIENCE, "ready", || server.get("/readyz").0 == 200);
    redis.freeze();
    the_policies_answer(&server).await;
    eventually(PATIENCE, "not ready", || server.get("/readyz").0 == 503);
    assert_eq!(server.get("/livez").0, 200);
    redis.thaw();
    eventually(PATIENCE, "ready again", || server.get("/readyz").0 == 200);
    the_store_answers(&server).await;
    let (_, metrics) = server.get("/metrics");
    let counted = r#"weir_decisions_total{strategy="closed",outcome="degraded_denied"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
}

/// A service whose store is given 100 ms, which leaves a caller of 150 ms its answer.
fn on(redis: &RedisServer) -> Config {
    let store = redis_config(vec![redis.url()], Topology::Single);
    let store = RedisConfig { deadline: Micros::from_millis(100), ..store };
    Config { store: StoreConfig::Redis(store), ..config() }
}

async fn the_policies_answer(server: &Server) {
    let mut client = server.client().await;
    for (strategy, allowed) in [("open", true), ("closed", false)] {
        let asked = Instant::now();
        let answer = client.should_allow(ask_under(strategy, "r", "c")).await.unwrap().into_inner();
        assert!(asked.elapsed() < Duration::from_millis(500), "{strategy}: {:?}", asked.elapsed());
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
    let mut decided = async || match client.should_allow(ask_under("closed", "r", "c")).await {
        Ok(answer) => !answer.into_inner().degraded,
        Err(_) => false,
    };
    let started = Instant::now();
    while !decided().await {
        assert!(started.elapsed() < Duration::from_secs(2), "the workers have not found Redis again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
