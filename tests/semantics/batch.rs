//! The contract of `ShouldAllowBatch`, through the real server, on every store.

use tonic::Code;
use weir_config::{Config, ServerConfig, StoreConfig, Topology};
use weir_node::limiter::MAX_BATCH;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::should_allow_result::Result as Ended;
use weir_proto::v1::{Reason, ShouldAllowBatchRequest, ShouldAllowRequest, ShouldAllowResponse};

use crate::support::server::{Server, ask_under, config};
use crate::support::{RedisServer, SOON, eventually, redis_config};

const CLIENTS: usize = 10;

type Client = RateLimitServiceClient<tonic::transport::Channel>;

weir_testing::on_every_store!(holds_on);

async fn holds_on(store: StoreConfig) {
    let server = Server::ready(Config { store, ..config() });
    let mut client = server.client().await;
    answers_come_in_order(&mut client).await;
    a_bad_item_fails_alone(&mut client).await;
    the_same_key_is_decided_in_order(&mut client).await;
    exactly_the_limit_is_admitted(&server).await;
}

async fn answers_come_in_order(client: &mut Client) {
    let costs = 0..MAX_BATCH as u64;
    let asks = costs.clone().map(|index| ShouldAllowRequest {
        cost: Some(index % 7),
        ..ask_under("burst", "in order", &format!("consumer {index}"))
    });
    for (index, result) in costs.zip(batch(client, asks.collect()).await) {
        let (cost, answer) = (index % 7, result.unwrap());
        let reason = if cost > 5 { Reason::Never } else { Reason::Ok };
        assert_eq!((answer.reason(), answer.remaining), (reason, Some(if cost > 5 { 5 } else { 5 - cost })));
    }
}

async fn a_bad_item_fails_alone(client: &mut Client) {
    let good = || ask_under("burst", "with bad ones", "bob");
    let long = "x".repeat(513);
    let asks = vec![
        good(),
        ask_under("burst", "", "bob"),
        ask_under("no such strategy", "r", "bob"),
        ask_under("burst", &long, "bob"),
        ask_under("burst", "r", ""),
        good(),
    ];
    let results = batch(client, asks).await;
    let codes: Vec<Code> = results.iter().map(|it| it.as_ref().err().map_or(Code::Ok, |it| it.0)).collect();
    let bad = Code::InvalidArgument;
    assert_eq!(codes, [Code::Ok, bad, Code::NotFound, bad, bad, Code::Ok]);
    let message = &results[2].as_ref().unwrap_err().1;
    assert!(message.contains("no such strategy"), "{message}");
    assert_eq!(results[5].as_ref().unwrap().remaining, Some(3));
}

async fn the_same_key_is_decided_in_order(client: &mut Client) {
    let cost = |cost| ShouldAllowRequest { cost: Some(cost), ..ask_under("burst", "same key", "bob") };
    let peek = ShouldAllowRequest { peek: true, ..cost(1) };
    let asks = vec![cost(2), cost(4), peek, cost(3), cost(1), cost(0)];
    let answers = batch(client, asks).await.into_iter().map(Result::unwrap);
    let observed: Vec<_> = answers.map(|answer| (answer.allowed, answer.remaining.unwrap())).collect();
    assert_eq!(observed, [(true, 3), (false, 3), (true, 3), (true, 0), (false, 0), (true, 0)]);
}

/// Every client keeps asking for the same five tokens, in batches of the largest size.
async fn exactly_the_limit_is_admitted(server: &Server) {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = server.client().await;
        let asks = vec![ask_under("burst", "crowded", "crowd"); MAX_BATCH];
        clients.push(tokio::spawn(async move { batch(&mut client, asks).await }));
    }
    let mut admitted = 0;
    for client in clients {
        for answer in client.await.unwrap() {
            let answer = answer.unwrap();
            assert!(!answer.degraded);
            admitted += usize::from(answer.allowed);
        }
    }
    assert_eq!(admitted, 5);
}

#[tokio::test]
async fn a_batch_holds_one_to_a_thousand() {
    let server = Server::ready(config());
    let mut client = server.client().await;
    for count in [0, MAX_BATCH + 1] {
        let requests = vec![ask_under("burst", "r", "c"); count];
        let refused = client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert_eq!(refused.message(), format!("requests is {count} entries: there must be 1 to 1000"));
    }
}

/// A batch has a bound of its own, and a single decision keeps its smaller one.
#[tokio::test]
async fn a_message_above_its_bound_is_refused() {
    let server = Server::ready(config());
    let mut client = server.client().await;
    let large = |bytes: usize| vec![ask_under("burst", &"x".repeat(512), "c"); bytes / 524];
    assert_eq!(batch(&mut client, large(500 << 10)).await.len(), (500 << 10) / 524);
    let fat = ask_under("burst", &"x".repeat(70 << 10), "c");
    assert_eq!(client.should_allow(fat.clone()).await.unwrap_err().code(), Code::ResourceExhausted);
    let requests = vec![fat; 15];
    let refused = client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn every_item_has_its_policy_and_counts() {
    let redis = RedisServer::start();
    let store = StoreConfig::Redis(redis_config(vec![redis.url()], Topology::Single));
    let server = Server::ready(Config { store, ..config() });
    redis.kill();
    eventually(SOON, "not ready", || server.get("/readyz").0 == 503);
    let asks = ["open", "closed", "burst"].map(|strategy| ask_under(strategy, "r", "c"));
    let results = batch(&mut server.client().await, asks.to_vec()).await;
    let [Ok(open), Ok(closed), Err((code, _))] = &results[..] else { panic!("{results:?}") };
    assert_eq!((open.allowed, open.degraded, closed.allowed, closed.degraded), (true, true, false, true));
    assert_eq!(*code, Code::Unavailable);
    let (_, metrics) = server.get("/metrics");
    for (strategy, outcome) in
        [("open", "degraded_allowed"), ("closed", "degraded_denied"), ("burst", "error")]
    {
        let line = format!("weir_decisions_total{{strategy=\"{strategy}\",outcome=\"{outcome}\"}} 1");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
}

#[tokio::test]
async fn a_batch_is_one_script_call_for_each_512_decisions() {
    let redis = RedisServer::builder().arg("--slowlog-log-slower-than").arg("0").arg("--slowlog-max-len");
    let redis = redis.arg("10000").start();
    let store = StoreConfig::Redis(redis_config(vec![redis.url()], Topology::Single));
    let one_worker = ServerConfig { workers: 1, ..config().server };
    let server = Server::ready(Config { store, server: one_worker, ..config() });
    let mut client = server.client().await;
    let asks = |count: usize| (0..count).map(|index| ask_under("burst", "r", &index.to_string())).collect();
    // The first call may find that Redis does not know the script yet.
    batch(&mut client, asks(1)).await;
    for count in [2, 100, MAX_BATCH] {
        let before = script_calls(&redis);
        batch(&mut client, asks(count)).await;
        // As many may be in flight over one link.
        assert_eq!(script_calls(&redis) - before, count.div_ceil(512), "{count} decisions");
    }
}

/// Counts the calls of scripts for decisions: every command is slow enough for the log. The watcher calls one without
/// keys, and probes have keys of their own.
fn script_calls(redis: &RedisServer) -> usize {
    /// Number, time, duration, the command, and its sender.
    type Entry = (u64, u64, u64, Vec<Vec<u8>>, String, String);
    let entries: Vec<Entry> = redis.query(&["SLOWLOG", "GET", "-1"]);
    let decides = |args: &[Vec<u8>]| match args {
        [name, _, keys, key, ..] => {
            name == b"EVALSHA" && keys != b"0" && !key.windows(7).any(|part| part == b"}probe:")
        }
        _ => false,
    };
    entries.iter().filter(|(_, _, _, args, ..)| decides(args)).count()
}

/// The results of a batch: what was decided, or the code and message of the error.
async fn batch(
    client: &mut Client,
    requests: Vec<ShouldAllowRequest>,
) -> Vec<Result<ShouldAllowResponse, (Code, String)>> {
    let count = requests.len();
    let answer = client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap();
    let results = answer.into_inner().results;
    assert_eq!(results.len(), count);
    let ended = results.into_iter().map(|it| match it.result.expect("every result says something") {
        Ended::Response(response) => Ok(response),
        Ended::Error(error) => Err((Code::from_i32(error.code), error.message)),
    });
    ended.collect()
}
