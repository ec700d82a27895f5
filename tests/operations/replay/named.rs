//! The strategy that decides again: that of the resource, the one that the call named, or the limit that it brought
//! along.

use serde_json::{Value, json};
use weir_config::{Config, ConfigOverrides};
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::inline_limit::Algorithm;
use weir_proto::v1::{
    InlineLimit, InlineTokenBucket, InlineWindow, RefundRequest, ResetRequest, ShouldAllowRequest,
};

use super::{Live, replay, text, weir};
use crate::support::server::{Server, ask, ask_under};

fn rules(small: &str, resources: &str, inline: bool) -> String {
    let bucket = |burst| {
        format!(
            "{{ limits: [{{ name: each, per: [resource, consumer], token_bucket: {{ rate: 1/1h, burst: {burst} }} }}] }}"
        )
    };
    format!(
        "server: {{ inline_limits: {inline} }}\nstrategies: {{ {small}: {}, large: {} }}\nresources: [{resources}]\n",
        bucket(1),
        bucket(3)
    )
}

impl Live {
    /// A server with these rules that logs everything.
    fn server_of(&self, rules: &str) -> Server {
        let log = format!("log: {{ decisions: {{ keys: 1, file: {} }} }}", self.log().display());
        Server::ready(
            Config::parse(&format!("{rules}\n{log}\n"), "test", &ConfigOverrides::default()).unwrap(),
        )
    }

    fn replayed(&self, rules: &str) -> Value {
        let file = crate::support::scratch::file(self.folder.path(), "other.yaml", rules);
        replay(&file, &["--replay", self.log().to_str().unwrap()])
    }

    fn lines(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.log()).unwrap();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The rows, each as `compared`, `now_denied`, `now_allowed`, `refused`.
fn rows(result: &Value) -> Vec<(String, [u64; 4])> {
    let numbers = |row: &Value| {
        ["compared", "now_denied", "now_allowed", "refused"].map(|name| row[name].as_u64().unwrap())
    };
    let rows = result["strategies"].as_array().unwrap();
    rows.iter().map(|row| (row["strategy"].as_str().unwrap().to_owned(), numbers(row))).collect()
}

#[tokio::test]
async fn a_call_that_named_its_strategy_is_decided_by_the_one_of_that_name() {
    let live = Live::new();
    let mut server = live.server_of(&rules("small", "{ match: '*', strategy: small }", false));
    let mut client = server.client().await;
    for _ in 0..3 {
        client.should_allow(ask("r", "unnamed")).await.unwrap();
        client.should_allow(ask_under("small", "r", "named")).await.unwrap();
    }
    let given_back = RefundRequest {
        resource: "r".to_owned(),
        consumer: "unnamed".to_owned(),
        ..RefundRequest::default()
    };
    client.refund(given_back).await.unwrap();
    server.stop();
    server.ended().unwrap();
    let defaults: Vec<bool> = live.lines().iter().map(|line| line["default"] == true).collect();
    assert_eq!(defaults, [true, false, true, false, true, false, true]);
    let other = |small: &str, resources: &str| rows(&live.replayed(&rules(small, resources, false)));
    // The resource has another strategy now; the one of the name is as it was.
    let large = "{ match: '*', strategy: large }";
    assert_eq!(other("small", large), [("small".to_owned(), [6, 0, 2, 0])]);
    // A server without the strategy, or without one for the resource, does not decide the call.
    assert_eq!(other("tiny", large), [("small".to_owned(), [3, 0, 2, 3])]);
    assert_eq!(other("small", ""), [("small".to_owned(), [3, 0, 0, 4])]);
}

#[tokio::test]
async fn a_limit_of_a_call_is_in_the_log_and_decides_again() {
    let live = Live::new();
    let inline = "{ match: '*', strategy: large }";
    let mut server = live.server_of(&rules("small", inline, true));
    let mut client = server.client().await;
    let hour = Some(prost_types::Duration { seconds: 3_600, nanos: 0 });
    let window = InlineWindow { limit: 2, window: hour };
    let bucket = InlineTokenBucket { rate: 10, period: hour, burst: Some(2) };
    let algorithms = [
        Algorithm::TokenBucket(bucket),
        Algorithm::FixedWindow(window),
        Algorithm::SlidingWindow(window),
        Algorithm::SlidingLog(window),
    ];
    for algorithm in algorithms {
        let limit =
            InlineLimit { name: "own".to_owned(), algorithm: Some(algorithm), ..InlineLimit::default() };
        for (id, at_most) in [("", false), ("once", false), ("once", false), ("", true)] {
            let call = ShouldAllowRequest {
                inline: Some(limit.clone()),
                id: id.to_owned(),
                at_most,
                ..ask("r", &format!("{algorithm:?}").to_lowercase()[..11])
            };
            client.should_allow(call).await.unwrap();
        }
    }
    server.stop();
    server.ended().unwrap();
    let lines = live.lines();
    let logged = |index: usize| lines[4 * index]["inline"].clone();
    let expected =
        |algorithm: &str| json!({ "algorithm": algorithm, "limit": 2, "window_us": 3_600_000_000_u64 });
    assert_eq!(
        [0, 1, 2, 3].map(logged),
        [
            json!({ "algorithm": "token_bucket", "rate": 1, "period_us": 360_000_000, "burst": 2 }),
            expected("fixed_window"),
            expected("sliding_window"),
            expected("sliding_log"),
        ]
    );
    let outcomes: Vec<&Value> = lines.iter().map(|line| &line["outcome"]).collect();
    assert_eq!(outcomes, [["allowed", "allowed", "repeated", "denied"]; 4].concat());
    let same = live.replayed(&rules("small", inline, true));
    assert_eq!(
        (rows(&same), &same["of_requests"]),
        (vec![("inline=own".to_owned(), [16, 0, 0, 0])], &json!(0))
    );
    // A list of the other configuration applies, and so does its refusal of such limits.
    let with_list = format!("{}access: {{ deny: [tokenbucket] }}\n", rules("small", inline, true));
    assert_eq!(rows(&live.replayed(&with_list)), [("inline=own".to_owned(), [16, 3, 0, 0])]);
    let off = live.replayed(&rules("small", inline, false));
    assert_eq!(rows(&off), [("inline=own".to_owned(), [0, 0, 0, 16])]);
}

/// The limits that a refund or a reset has named are in the log, and nothing else changes when it is replayed.
#[tokio::test]
async fn a_refund_and_a_reset_change_the_limits_that_they_named() {
    let live = Live::new();
    let rules = "
server: { admin_service: true }
strategies:
  two:
    limits:
      - { name: all, per: [resource], token_bucket: { rate: 1/1d, burst: 4 } }
      - { name: each, per: [resource, consumer], token_bucket: { rate: 1/1d, burst: 2 } }
resources: [{ match: '*', strategy: two }]
";
    let mut server = live.server_of(rules);
    let mut client = server.client().await;
    let mut called = Vec::new();
    let (resource, consumer) = ("r".to_owned(), "bob".to_owned());
    for (index, who) in ["bob", "bob", "bob", "bob", "ann", "ann"].into_iter().enumerate() {
        if index == 2 {
            let (limits, cost) = (vec!["each".to_owned()], Some(2));
            let (resource, consumer) = (resource.clone(), consumer.clone());
            let refund = RefundRequest { resource, consumer, limits, cost, ..RefundRequest::default() };
            client.refund(refund).await.unwrap();
        }
        if index == 5 {
            let (resource, consumer) = (resource.clone(), consumer.clone());
            let reset = ResetRequest {
                resource,
                consumer,
                limits: vec!["all".to_owned()],
                ..ResetRequest::default()
            };
            AdminServiceClient::new(server.channel().await).reset(reset).await.unwrap();
        }
        called.push(client.should_allow(ask("r", who)).await.unwrap().into_inner().allowed);
    }
    assert_eq!(called, [true, true, true, true, false, true]);
    server.stop();
    server.ended().unwrap();
    assert_eq!(rows(&live.replayed(rules)), [("two".to_owned(), [6, 0, 0, 0])]);
}

#[test]
fn numbers_that_no_request_may_have_are_refused() {
    let live = Live::new();
    for (inline, reason) in [
        (json!({ "algorithm": "gcra" }), "`algorithm` must be one of token_bucket, fixed_window"),
        (json!({ "algorithm": "sliding_log", "limit": 1 }), "`window_us` must be a whole number from 0"),
        (
            json!({ "algorithm": "fixed_window", "limit": 1, "window_us": 0 }),
            "`inline` is no limit of a request",
        ),
        (json!(7), "`inline` is no limit of a request"),
    ] {
        let line = json!({
            "log": "decisions", "keys": 1, "incarnation": "a", "sequence": 1, "time_us": 1, "operation": "charge",
            "strategy": "inline=own", "inline": inline, "resource": "r", "consumer": "bob", "cost": 1, "granted": 1,
            "outcome": "allowed", "limits": [],
        });
        std::fs::write(live.log(), line.to_string()).unwrap();
        let out = weir(&["simulate", "--replay", live.log().to_str().unwrap()]);
        let error = text(&out.stderr);
        assert!(out.status.code() == Some(2) && error.contains(reason), "{error}");
        let column = line.to_string().find("\"inline\":").unwrap() + 1;
        assert!(error.contains(&format!("line 1, column {column}: ")), "{error}");
    }
}
