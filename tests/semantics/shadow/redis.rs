//! Shadows on a Redis of their own: their keys, the calls that they cost, an outage, and the log line.

use std::process::Stdio;

use weir_config::{StoreConfig, Topology};
use weir_load::client::Client;
use weir_proto::v1::ShouldAllowRequest;

use super::{Asking, RULES, count, until};
use crate::support::server::{Server, ask};
use crate::support::{
    Process, RedisServer, SOON, eventually, eventually_async, eventually_some, ports, redis_config,
};

fn on(redis: &RedisServer) -> StoreConfig {
    StoreConfig::Redis(redis_config(vec![redis.url()], Topology::Single))
}

#[tokio::test]
async fn a_shadow_of_the_same_engines_shares_the_call_and_no_key() {
    let redis = RedisServer::start();
    let mut asking = Asking::start(on(&redis)).await;
    let ask = asking.ask("bob");
    asking.allowed(ask.clone()).await;
    until(&asking.server, "looser", [("allowed", 1), ("denied", 0)]);
    let mut names: Vec<String> = redis
        .state_keys()
        .into_iter()
        .map(|key| key.split_once('}').unwrap().1.split('|').next().unwrap().to_owned())
        .collect();
    names.sort();
    let expected = ["Ltighter~api:more", "Wapi:each", "Wlooser~api:each", "Wtighter~api:each"];
    assert_eq!(names, expected);
    // All keys of one call are in one slot.
    let tags: std::collections::BTreeSet<String> =
        redis.state_keys().into_iter().map(|key| key.split('}').next().unwrap().to_owned()).collect();
    assert_eq!(tags.len(), 1, "{tags:?}");
}

/// One strategy with one shadow, whose script is the same: as many calls of Redis as without.
#[tokio::test]
async fn both_need_one_round_trip() {
    let redis = RedisServer::start();
    let text = "
strategies:
  api:
    limits: [{ name: each, per: [resource, consumer], fixed_window: { limit: 1000, window: 1d } }]
    shadow: [looser]
  looser: { limits: [{ name: each, per: [resource, consumer], fixed_window: { limit: 5000, window: 1d } }] }
resources: [{ match: '*', strategy: api }]
";
    let config = weir_config::Config::parse(text, "test", &weir_config::ConfigOverrides::default()).unwrap();
    let server = Server::ready(weir_config::Config { store: on(&redis), ..config });
    let mut client = server.client().await;
    client.should_allow(ask("warm", "up")).await.unwrap();
    let decided = |expected: u64| count(&server, "api", "looser", "allowed") == expected;
    eventually(SOON, "it is decided", || decided(1));
    let before = redis.script_calls();
    for index in 0..100 {
        client.should_allow(ask("api/orders", &format!("bob-{index}"))).await.unwrap();
    }
    eventually(SOON, "all are decided", || decided(101));
    let calls = redis.script_calls() - before;
    // Probes of the node are calls too, one a second.
    assert!((100..150).contains(&calls), "{calls}");
}

#[tokio::test]
async fn no_policy_answers_for_a_shadow() {
    let redis = RedisServer::start();
    let mut asking = Asking::start(on(&redis)).await;
    redis.kill();
    let ask = asking.ask("bob");
    assert!(asking.allowed(ask).await, "the policy of the live strategy allows it");
    until(&asking.server, "looser", [("error", 1), ("allowed", 0)]);
}

#[tokio::test]
async fn what_differs_is_logged_now_and_then() {
    let folder = tempfile::tempdir().unwrap();
    let file = crate::support::scratch::file(folder.path(), "weir.yaml", RULES);
    let [grpc, admin] = [(); 2].map(|()| format!("127.0.0.1:{}", ports::free()));
    let mut command = Process::command(env!("CARGO_BIN_EXE_weir"));
    command.args(["serve", "--config", file.to_str().unwrap(), "--listen", &grpc, "--admin", &admin]);
    command.args(["--drain-delay", "0s"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = Process::spawn(command).unwrap();
    let stderr = process.child().stderr.take().unwrap();
    let reader = std::thread::spawn(move || std::io::read_to_string(stderr).unwrap());
    let url = format!("http://{grpc}");
    let connected = async || Client::connect(&url, SOON).await.is_ok();
    eventually_async(SOON, "it serves", connected).await;
    let mut client = Client::connect(&url, SOON).await.unwrap();
    for index in 0..150 {
        let request = ShouldAllowRequest {
            resource: "r".to_owned(),
            consumer: format!("bob-{index}"),
            strategy: "api".to_owned(),
            cost: Some(2),
            ..ShouldAllowRequest::default()
        };
        client.should_allow(request).await.unwrap();
    }
    let ask = |strategy: &str, cost| ShouldAllowRequest {
        resource: "r".to_owned(),
        consumer: "bob-0".to_owned(),
        strategy: strategy.to_owned(),
        cost: Some(cost),
        ..ShouldAllowRequest::default()
    };
    assert!(!client.should_allow(ask("api", 2)).await.unwrap().allowed);
    // Where other limits deny, one in shadow mode changes nothing.
    assert!(!client.should_allow(ask("full", 1)).await.unwrap().allowed);
    process.signal("TERM");
    eventually_some(SOON, "weir ends", || process.exited());
    let log = reader.join().unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("a shadow differs")).collect();
    // Both ways: `looser` allows what is denied.
    let (lines, others): (Vec<&str>, Vec<&str>) =
        lines.into_iter().partition(|line| line.contains("\"tighter\""));
    let other: Vec<serde_json::Value> =
        others.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [other] = &other[..] else { panic!("{others:?}") };
    assert_eq!(
        (&other["shadow"], &other["live"], &other["outcome"]),
        (&"looser".into(), &false.into(), &"allowed".into())
    );
    // The first and the hundred-and-first of one worker or of several.
    assert!((2..=6).contains(&lines.len()), "{log}");
    let line: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!((&line["strategy"], &line["shadow"]), (&"api".into(), &"tighter".into()), "{line}");
    assert_eq!((&line["live"], &line["outcome"]), (&true.into(), &"never".into()));
    assert!(!lines[0].contains("bob"));
}
