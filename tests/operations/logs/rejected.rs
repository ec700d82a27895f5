//! Rejected requests in the log: each at debug, and one line a minute at info.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::Value;
use tonic::transport::Channel;
use weir_load::client::Client;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{ShouldAllowBatchRequest, ShouldAllowRequest};

use crate::support::command::{WEIR, weir};
use crate::support::{Process, SOON, eventually, eventually_async, ports, scratch};

const CONFIG: &str = "
strategies: { api: { limits: [{ name: each, per: [consumer], fixed_window: { limit: 2, window: 1h } }] } }
resources: [{ match: 'api/*', strategy: api }]
queues: { work: { capacity: 10 } }
";

struct Logged {
    _process: Process,
    url: String,
    http: String,
    folder: tempfile::TempDir,
}

impl Logged {
    fn start(level: &str, transport: &str) -> Self {
        let folder = scratch::dir("rejected-");
        let (config, log) = (folder.path().join("weir.yaml"), folder.path().join("log"));
        fs::write(&config, CONFIG).unwrap();
        let address = format!("127.0.0.1:{}", ports::free());
        let http = format!("127.0.0.1:{}", ports::free());
        let mut command = Process::command(WEIR);
        command.args([
            "serve",
            "--config",
            config.to_str().unwrap(),
            "--log",
            level,
            "--transport",
            transport,
        ]);
        command.args(["--listen", &address, "--admin", "127.0.0.1:0", "--workers", "1", "--http", &http]);
        command.stdout(Stdio::null()).stderr(File::create(log).unwrap());
        Self { _process: Process::spawn(command).unwrap(), url: format!("http://{address}"), http, folder }
    }

    fn lines(&self, message: &str) -> Vec<Value> {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["message"].as_str().is_some_and(|text| text.starts_with(message))).collect()
    }

    async fn client(&self) -> Client {
        let connected = async || Client::connect(&self.url, SOON).await.is_ok();
        eventually_async(SOON, "it serves", connected).await;
        Client::connect(&self.url, SOON).await.unwrap()
    }
}

fn asks(strategy: &str, consumer: &str) -> ShouldAllowRequest {
    let (resource, strategy, consumer) = ("api/x".to_owned(), strategy.to_owned(), consumer.to_owned());
    ShouldAllowRequest { resource, strategy, consumer, ..ShouldAllowRequest::default() }
}

async fn rejected_requests_are_logged(transport: &str) {
    let logged = Logged::start("debug", transport);
    let mut client = logged.client().await;
    client.should_allow(asks("nobody", "bob")).await.unwrap_err();
    client.should_allow(asks("", "")).await.unwrap_err();
    client.should_allow(asks("", "bob")).await.unwrap();
    let channel = Channel::from_shared(logged.url.clone()).unwrap().connect().await.unwrap();
    let mut batch = RateLimitServiceClient::new(channel);
    let requests = vec![asks("", "bob"), asks("other", "bob")];
    batch.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap();
    for args in [
        &["queue", "take", "nothing"][..],
        &["lease", "acquire", "api/x", "bob", "--id", "1"][..],
        &["count", "api/x", "bob", "--limit", "none", "--over", "1m"][..],
    ] {
        weir(&[args, &["--server", &logged.url]].concat());
    }
    eventually(SOON, "all are logged", || logged.lines("rejected").len() >= 6);
    let said = |line: &Value| {
        let of = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        assert!(of("peer").starts_with("127.0.0.1:"), "{line}");
        assert!(!of("error").is_empty(), "{line}");
        (of("method"), of("field"))
    };
    let lines: Vec<(String, String)> = logged.lines("rejected").iter().map(said).collect();
    for (method, field) in [
        ("ShouldAllow", "strategy"),
        ("ShouldAllow", "consumer"),
        ("ShouldAllowBatch", "strategy"),
        ("Take", "queue"),
        ("Acquire", ""),
        ("Count", "limit"),
    ] {
        assert!(lines.contains(&(method.to_owned(), field.to_owned())), "{method} {field}: {lines:?}");
    }
    let decided = logged.lines("decided");
    assert_eq!(decided.len(), 2);
    assert!(
        decided.iter().all(|line| line["peer"].as_str().unwrap().starts_with("127.0.0.1:")),
        "{decided:?}"
    );
}

#[tokio::test]
async fn rejected_requests_are_logged_with_method_field_and_peer() {
    rejected_requests_are_logged("fast").await;
}

#[tokio::test]
async fn rejected_requests_are_logged_with_method_field_and_peer_on_tonic() {
    rejected_requests_are_logged("tonic").await;
}

#[tokio::test]
async fn at_info_one_line_counts_rejected_requests_by_kind() {
    let logged = Logged::start("info", "fast");
    let mut client = logged.client().await;
    client.should_allow(asks("nobody", "bob")).await.unwrap_err();
    eventually(SOON, "the first one is said at once", || logged.lines("requests rejected").len() == 1);
    let line = &logged.lines("requests rejected")[0];
    assert_eq!(
        (line["unknown_strategy"].as_u64(), &line["invalid_field"]),
        (Some(1), &Value::Null),
        "{line}"
    );
    assert!(!line.to_string().contains("nobody"), "what callers send is not in it: {line}");
    for _ in 0..20 {
        client.should_allow(asks("", "")).await.unwrap_err();
    }
    assert_eq!(logged.lines("requests rejected").len(), 1, "the next line comes in a minute");
    assert_eq!(logged.lines("rejected").len(), 0, "each of them is for debug");
}

/// A page in a browser, a scanner and one with another type: one line, with the rule and the peer of the first.
#[test]
fn refused_http_requests_are_logged_once_a_minute() {
    let logged = Logged::start("info", "fast");
    let ask = |path: &str, headers: &str| {
        let mut stream = TcpStream::connect(&logged.http).ok()?;
        write!(stream, "POST {path} HTTP/1.0\r\n{headers}\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.split(' ').nth(1)?.parse::<u16>().ok()
    };
    let allow = "/weir.v1.RateLimitService/ShouldAllow";
    eventually(SOON, "it serves", || ask(allow, "Origin: https://evil.example\r\n") == Some(403));
    assert_eq!(ask("/wp-login.php", ""), Some(404));
    assert_eq!(ask(allow, "Content-Type: text/plain\r\n"), Some(415));
    let refused = || logged.lines("HTTP request refused");
    eventually(SOON, "it is logged", || !refused().is_empty());
    let lines = refused();
    assert_eq!((lines.len(), &lines[0]["rule"]), (1, &Value::from("origin")), "{lines:?}");
    assert!(lines[0]["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{lines:?}");
}
