//! Ten reloads a second beside saturating load: no answer mixes two configurations, and nothing is counted twice or not at
//! all. It prints the slowest of a hundred calls with and without reloads, by turns.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use weir_config::Config;
use weir_proto::v1::control_service_client::ControlServiceClient;
use weir_proto::v1::{ReloadRequest, ShouldAllowRequest};
use weir_testing::RedisServer;

use crate::support::server::{Server, ask};
use crate::support::{SOON, eventually, scratch, seconds_of};

/// Callers at a time.
const CALLERS: usize = 16;

/// Version `number` of the file: both limits say it.
fn version(store: &str, number: u64) -> String {
    format!(
        "{store}server: {{ control: true, audit_file: audit }}\ncontrol: {{ cache_file: entries }}\n\
         strategies: {{ s: {{ limits: [\n\
         {{ name: a, per: [consumer], fixed_window: {{ limit: {}, window: 1h }} }},\n\
         {{ name: b, per: [consumer], token_bucket: {{ rate: {}/1h }} }}] }} }}\n\
         resources: [{{ match: x, strategy: s }}]\n",
        1_000_000 + number,
        2_000_000 + number
    )
}

fn span() -> Duration {
    seconds_of("WEIR_RELOAD_SECONDS", 3)
}

#[tokio::test]
async fn on_memory() {
    check("").await;
}

#[tokio::test]
async fn on_redis() {
    let redis = RedisServer::start();
    check(&format!("store: {{ redis: {{ nodes: ['{}'], deadline: 1s }} }}\n", redis.url())).await;
}

async fn check(store: &str) {
    let folder = scratch::dir("swaps-");
    let file = scratch::file(folder.path(), "weir.yaml", version(store, 0));
    let server = Server::start_by_the_system(Config::load(&file, &weir::features::overrides()).unwrap());
    eventually(SOON, "the service is ready", || server.get("/readyz").0 == 200);
    let mut control = ControlServiceClient::new(server.channel().await);
    // What is certainly in force, and what may be.
    let (least, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (mut number, mut calls, mut times) = (0, 0, [Vec::new(), Vec::new()]);
    for turn in 0..4 {
        let swaps = turn % 2 == 1;
        let done = Arc::new(AtomicBool::new(false));
        let mut callers = Vec::new();
        for caller in 0..CALLERS {
            let (client, done) = (server.client().await, Arc::clone(&done));
            callers.push(tokio::spawn(asks(client, caller, (Arc::clone(&least), Arc::clone(&most)), done)));
        }
        let start = Instant::now();
        while start.elapsed() < span() / 4 {
            if swaps {
                number += 1;
                fs::write(&file, version(store, number)).unwrap();
                most.store(number, SeqCst);
                let report = control.reload(ReloadRequest {}).await.unwrap().into_inner();
                assert_eq!(report.mistakes, Vec::<String>::new());
                least.store(number, SeqCst);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        done.store(true, SeqCst);
        for caller in callers {
            let mut own = caller.await.unwrap();
            calls += own.len() as u64;
            times[usize::from(swaps)].append(&mut own);
        }
    }
    assert!(number > 2 && calls > 100, "{number} swaps beside {calls} calls");
    let counted = server.metric("weir_decisions_total{strategy=\"s\",outcome=\"allowed\"}");
    assert_eq!(counted, calls, "each call is counted once");
    let [without, with] = times.map(slowest_of_a_hundred);
    println!("{number} reloads beside {calls} calls; p99 without {without:?}, with reloads {with:?}");
}

/// Asks until it is done, and checks that each answer is of one configuration that was in force during the call.
async fn asks(
    mut client: weir_proto::v1::rate_limit_service_client::RateLimitServiceClient<tonic::transport::Channel>,
    caller: usize,
    (least, most): (Arc<AtomicU64>, Arc<AtomicU64>),
    done: Arc<AtomicBool>,
) -> Vec<Duration> {
    let (consumer, mut times) = (format!("caller-{caller}"), Vec::new());
    while !done.load(SeqCst) {
        let (from, start) = (least.load(SeqCst), Instant::now());
        let request = ShouldAllowRequest { cost: Some(1), ..ask("x", &consumer) };
        let answer = client.should_allow(request).await.unwrap().into_inner();
        times.push(start.elapsed());
        let to = most.load(SeqCst);
        let [a, b] = [0, 1].map(|place| answer.limits[place].limit);
        assert_eq!(a + 1_000_000, b, "an answer of two configurations: {answer:?}");
        let version = a - 1_000_000;
        assert!((from..=to).contains(&version), "version {version} is not from {from} to {to}");
        assert!(answer.allowed);
    }
    times
}

fn slowest_of_a_hundred(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}
