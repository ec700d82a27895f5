//! The decision log: which lines are written, in which order, and that it never stands in the way of a decision.

mod costs;
mod dropped;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use tonic::transport::Channel;
use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_envoy::settings::{EnvoyConfig, with_envoy};
use weir_proto::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use weir_proto::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use weir_proto::envoy::service::ratelimit::v3::RateLimitRequest;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient as EnvoyClient;
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{
    CancelReservationRequest, Cost, DebitRequest, RefundRequest, ReserveRequest, ResetRequest,
    ShouldAllowBatchRequest, ShouldAllowRequest, ShouldAllowStreamRequest, StreamedRequest,
};

use crate::support::requests::About as _;
use crate::support::server::{BASE, Server, ask, ask_under};
use crate::support::stores;

const RULES: &str = "
server: { admin_service: true, workers: 2 }
strategies:
  api: { limits: [{ name: each, per: [resource, consumer], token_bucket: { rate: 1/1m, burst: 2 } }] }
  held:
    hold: { max: 10m }
    limits: [{ name: output, per: [consumer], cost: output, fixed_window: { limit: 100, window: 1w, anchored: true } }]
  two:
    limits:
      - { name: all, per: [resource], fixed_window: { limit: 10, window: 1h } }
      - { name: each, per: [resource, consumer], fixed_window: { limit: 4, window: 1h } }
resources: [{ match: api/*, strategy: api }]
access: { deny: [mallory], allow: [keeper] }
";

/// The rules with a `log` section, of which `FOLDER` stands for the folder.
fn config_of(log: &str, folder: &Path) -> Config {
    let text = format!("{RULES}\nlog: {}\n", log.replace("FOLDER", folder.to_str().unwrap()));
    Config::parse(&text, "test", &ConfigOverrides::default()).unwrap()
}

/// The lines of a log once the server has ended, whose numbers have no gap.
fn lines_of(server: &mut Server, file: &Path) -> Vec<Value> {
    server.stop();
    server.ended().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (number, line) in (1..).zip(&lines) {
        assert_eq!(
            (&line["sequence"], &line["incarnation"]),
            (&Value::from(number), &lines[0]["incarnation"])
        );
    }
    lines
}

fn text<'v>(line: &'v Value, name: &str) -> &'v str {
    line[name].as_str().unwrap_or_else(|| panic!("{name} in {line}"))
}

#[tokio::test]
async fn a_key_is_logged_completely_or_not_at_all_and_denials_all() {
    let folder = tempfile::tempdir().unwrap();
    let log = "{ decisions: { keys: 0.2, denied: true, file: FOLDER/log.jsonl } }";
    let mut server = Server::ready(config_of(log, folder.path()));
    let mut client = server.client().await;
    for _ in 0..3 {
        for consumer in 0..100 {
            client.should_allow(ask("api/orders", &format!("bob-{consumer}"))).await.unwrap();
        }
    }
    for consumer in ["mallory", "keeper"] {
        client.should_allow(ask("api/orders", consumer)).await.unwrap();
    }
    let peek = ShouldAllowRequest { peek: true, ..ask("api/orders", "bob-1") };
    client.should_allow(peek).await.unwrap();
    let page = server.get("/metrics").1;
    let lines = lines_of(&mut server, &folder.path().join("log.jsonl"));
    let mut keys = BTreeMap::<&str, Vec<&str>>::new();
    for line in &lines {
        keys.entry(text(line, "consumer")).or_default().push(text(line, "outcome"));
    }
    assert!((8..=32).contains(&keys.len()), "{}", keys.len());
    for (consumer, outcomes) in &keys {
        match *consumer {
            "mallory" => assert_eq!(outcomes[..], ["deny_list"]),
            "keeper" => assert_eq!(outcomes[..], ["allow_list"]),
            _ => assert_eq!(outcomes[..], ["allowed", "allowed", "denied"], "{consumer}"),
        }
    }
    let count = format!("weir_decision_log_lines_total{{log=\"decisions\"}} {}\n", lines.len());
    assert!(page.contains(&count), "{page}");
    // The other log has every denial and nothing else.
    let denied = std::fs::read_to_string(folder.path().join("log.denied.jsonl")).unwrap();
    let denied: Vec<Value> = denied.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(denied.len(), 101);
    assert!(denied.iter().all(|line| ["denied", "deny_list"].contains(&text(line, "outcome"))));
    assert!(denied.iter().all(|line| line["log"] == "denied"));
}

#[tokio::test]
async fn a_line_says_what_a_call_holds() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::ready(config_of("{ decisions: { keys: 1, file: FOLDER/log } }", folder.path()));
    let mut client = server.client().await;
    for (id, output) in
        [("one", Cost { cost: 80, at_least: None }), ("two", Cost { cost: 50, at_least: Some(1) })]
    {
        let hold_for = Some(prost_types::Duration { seconds: 120, nanos: 0 });
        let costs = [("output".to_owned(), output)].into();
        let asked =
            ShouldAllowRequest { id: id.to_owned(), costs, hold_for, ..ask_under("held", "chat", "bob") };
        assert!(client.should_allow(asked).await.unwrap().into_inner().allowed);
    }
    let lines = lines_of(&mut server, &folder.path().join("log"));
    for (line, [cost, granted, held]) in lines.iter().zip([[80, 80, 80], [50, 20, 100]]) {
        let limit = &line["limits"][0];
        assert_eq!(
            [&limit["cost"], &limit["granted"], &limit["held"]].map(Value::as_u64),
            [cost, granted, held].map(Some)
        );
        assert!((120_000_000..=157_500_000).contains(&line["held_for_us"].as_u64().unwrap()), "{line}");
    }
    assert_eq!(lines.len(), 2);
}

#[tokio::test]
async fn a_line_says_what_was_asked_and_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::ready(config_of("{ decisions: { keys: 1, file: FOLDER/log } }", folder.path()));
    let mut client = server.client().await;
    let attributes = [("region", "eu\"\n"), ("a", "b")].map(|(name, value)| (name.into(), value.into()));
    let asked = ShouldAllowRequest { cost: Some(2), attributes: attributes.into(), ..ask("api/x", "böb") };
    client.should_allow(asked).await.unwrap();
    client.should_allow(ask_under("two", "r", "bob")).await.unwrap();
    // Peeks change nothing, and are not logged.
    client.should_allow(ShouldAllowRequest { peek: true, ..ask("api/x", "böb") }).await.unwrap();
    let lines = lines_of(&mut server, &folder.path().join("log"));
    assert_eq!(lines.len(), 2);
    let expected = serde_json::json!({
        "log": "decisions", "keys": 1, "incarnation": lines[0]["incarnation"], "sequence": 1, "time_us": BASE.0,
        "operation": "charge", "strategy": "api", "default": true, "resource": "api/x", "consumer": "böb",
        "attributes": { "a": "b", "region": "eu\"\n" }, "cost": 2, "granted": 2, "outcome": "allowed",
        "limits": [{ "name": "each", "denies": false, "limit": 2, "remaining": 0, "reset_after_us": 120_000_000 }],
    });
    assert_eq!(lines[0], expected);
    assert_eq!(lines[1].get("default"), None);
    let names: Vec<&str> =
        lines[1]["limits"].as_array().unwrap().iter().map(|limit| text(limit, "name")).collect();
    assert_eq!(names, ["all", "each"]);
}

#[tokio::test]
async fn memory_logs_every_operation_that_changes_something() {
    every_operation_is_logged(stores::memory()).await;
}

#[tokio::test]
async fn redis_logs_every_operation_that_changes_something() {
    every_operation_is_logged(stores::redis()).await;
}

async fn every_operation_is_logged(store: StoreConfig) {
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("limits");
    std::fs::create_dir(&limits).unwrap();
    let rules =
        "domain: edge\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 1 } }]\n";
    std::fs::write(limits.join("edge.yaml"), rules).unwrap();
    let envoy = EnvoyConfig { config: Some(limits), ..EnvoyConfig::default() };
    let config = config_of("{ decisions: { keys: 1, file: FOLDER/log } }", folder.path());
    let config = with_envoy(config, envoy);
    let mut server = Server::ready(Config { store, ..config });
    // Keys of its own, also where the store is shared.
    let resource = format!("ops/{}", folder.path().display());
    let mut client = server.client().await;
    change_everything(&mut client, &resource).await;
    let mut admin = AdminServiceClient::new(server.channel().await);
    let reset = ResetRequest::about("two", &resource, "bob");
    admin.reset(reset.clone()).await.unwrap();
    admin.reset(ResetRequest { limits: vec!["all".to_owned()], ..reset }).await.unwrap();
    let mut envoy = EnvoyClient::new(server.channel().await);
    let entry = Entry { key: "user".to_owned(), value: resource.clone() };
    let descriptor = RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() };
    let request =
        RateLimitRequest { domain: "edge".to_owned(), descriptors: vec![descriptor; 2], hits_addend: 1 };
    envoy.should_rate_limit(request).await.unwrap();

    let lines = lines_of(&mut server, &folder.path().join("log"));
    let short = |line: &Value| {
        let [operation, strategy, outcome] = ["operation", "strategy", "outcome"].map(|it| text(line, it));
        format!("{operation} {strategy} {outcome} {}/{}", line["granted"], line["cost"])
    };
    let lines_of_limits: Vec<String> = lines.iter().map(short).collect();
    let expected = [
        "charge two allowed 1/1",
        "at_most two allowed 3/9",
        "charge two denied 0/1",
        "refund two done 2/2",
        "refund two known 0/2",
        "debit two done 3/3",
        "debit two done 15/100",
        "debit two known 15/100",
        "reserve api allowed 2/2",
        "reserve api allowed 1/1",
        "cancel api done 0/0",
        "cancel api known 0/0",
        "charge two never 0/99",
        "charge two never 0/98",
        "reset two done 0/0",
        "reset two done 0/0",
        "charge envoy allowed 1/1",
        "charge envoy denied 0/1",
    ];
    assert_eq!(lines_of_limits, expected);
    assert_eq!((&lines[3]["id"], &lines[4]["applied"]), (&"once".into(), &false.into()));
    assert_eq!((&lines[8]["max_wait_us"], &lines[8]["id"]), (&60_000_000.into(), &"a".into()));
    assert_eq!((lines[14].get("named"), &lines[15]["named"]), (None, &serde_json::json!(["all"])));
    for line in &lines {
        let asks = ["charge", "at_most", "reserve"].contains(&text(line, "operation"));
        assert_eq!(line["limits"][0].get("denies").is_some(), asks, "{line}");
    }
    assert!(text(&lines[16], "resource").starts_with("4:edge/4:user="));
}

async fn change_everything(client: &mut RateLimitServiceClient<Channel>, resource: &str) {
    let two = || ask_under("two", resource, "bob");
    client.should_allow(two()).await.unwrap();
    client.should_allow(ShouldAllowRequest { cost: Some(9), at_most: true, ..two() }).await.unwrap();
    client.should_allow(two()).await.unwrap();
    let (resource, consumer, strategy) = (resource.to_owned(), "bob".to_owned(), "two".to_owned());
    let refund = RefundRequest {
        cost: Some(2),
        id: "once".to_owned(),
        ..RefundRequest::about(&strategy, &resource, &consumer)
    };
    client.refund(refund.clone()).await.unwrap();
    client.refund(refund).await.unwrap();
    let debit = DebitRequest {
        resource: resource.clone(),
        consumer: consumer.clone(),
        strategy,
        cost: Some(3),
        id: "bill".to_owned(),
        ..DebitRequest::default()
    };
    client.debit(debit.clone()).await.unwrap();
    // Each limit may go as far into debt as it is large.
    let above = DebitRequest { cost: Some(100), id: "above".to_owned(), ..debit };
    for _ in 0..2 {
        client.debit(above.clone()).await.unwrap();
    }
    let strategy = "api".to_owned();
    for (id, cost) in [("a", 2), ("b", 1)] {
        let max_wait = Some(prost_types::Duration { seconds: 60, nanos: 0 });
        let reserve = ReserveRequest {
            cost: Some(cost),
            max_wait,
            id: id.to_owned(),
            ..ReserveRequest::about(&strategy, &resource, &consumer)
        };
        client.reserve(reserve).await.unwrap();
    }
    for _ in 0..2 {
        let cancel = CancelReservationRequest {
            id: "b".to_owned(),
            ..CancelReservationRequest::about(&strategy, &resource, &consumer)
        };
        client.cancel_reservation(cancel).await.unwrap();
    }
    let never = |cost| ShouldAllowRequest { cost: Some(cost), ..ask_under("two", &resource, "bob") };
    client.should_allow_batch(ShouldAllowBatchRequest { requests: vec![never(99)] }).await.unwrap();
    let one =
        ShouldAllowStreamRequest { requests: vec![StreamedRequest { id: 1, request: Some(never(98)) }] };
    let mut answers = client.should_allow_stream(tokio_stream::iter([one])).await.unwrap().into_inner();
    assert!(answers.message().await.unwrap().is_some());
}

#[tokio::test]
async fn a_log_goes_on_in_the_next_file_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let log = "{ decisions: { keys: 1, file: FOLDER/log, max_bytes: 1MiB, max_files: 3 } }";
    let mut server = Server::ready(config_of(log, folder.path()));
    let mut client = server.client().await;
    // All of it fits into the queue, however slow the disk is, and into four files.
    for _ in 0..100 {
        let requests = (0..50).map(|it| ask("api/x", &format!("{it:0400}"))).collect();
        client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap();
    }
    server.stop();
    server.ended().unwrap();
    let files = ["log.2", "log.1", "log"].map(|name| std::fs::read(folder.path().join(name)).unwrap());
    assert!(files.iter().all(|file| file.len() <= 1 << 20));
    let names: BTreeSet<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, ["log", "log.1", "log.2"].map(str::to_owned).into());
    let all = String::from_utf8(files.concat()).unwrap();
    let number = |line: &str| serde_json::from_str::<Value>(line).unwrap()["sequence"].as_u64().unwrap();
    let numbers: Vec<u64> = all.lines().map(number).collect();
    assert_eq!(numbers.last(), Some(&5_000));
    assert!(numbers.first() > Some(&1), "the oldest file is gone");
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
}

#[test]
fn a_mistake_of_the_section_is_named() {
    let wrong = |log: &str, expected: &str| {
        let text = format!("{RULES}\nlog: {log}\n");
        let errors = Config::parse(&text, "test", &ConfigOverrides::default()).unwrap_err().to_string();
        assert!(errors.contains(expected), "{log}: {errors}");
    };
    wrong("{ decisions: { keys: 1.5 } }", "log.decisions.keys: \"1.5\" is not a part of one, from 0 to 1");
    wrong("{ decisions: { keys: 1e-2 } }", "log.decisions.keys: \"1e-2\" is not a part of one");
    wrong("{ decisions: {} }", "log.decisions: logs nothing; add `keys`");
    wrong("{ decisions: { key: 1 } }", "log.decisions.key: unknown key; did you mean `keys`?");
    wrong(
        "{ decisions: { keys: 1, denied_file: a } }",
        "log.decisions.denied_file: is for the log of denials",
    );
    wrong("{ decisions: { keys: 1, max_files: 3 } }", "log.decisions.max_files: is for files");
    wrong(
        "{ decisions: { keys: 1, file: a, max_bytes: 1KiB } }",
        "log.decisions.max_bytes: 1024 is out of bounds: it must be from 1048576 to 1099511627776",
    );
    wrong(
        "{ decisions: { keys: 1, file: a, denied: true, denied_file: a } }",
        "log.decisions.denied_file: is the file of the other log too",
    );
}

#[test]
fn a_file_that_cannot_be_written_ends_the_start() {
    let config = config_of("{ decisions: { keys: 1, file: FOLDER/no/log } }", Path::new("/nowhere"));
    let mut server = Server::start(config);
    let error = server.ended().unwrap_err();
    assert!(error.contains("the decision log cannot be written to /nowhere/no/log"), "{error}");
}
