//! A reload reads the rules again: a right is taken away and another one given, on open connections.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use tempfile::TempDir;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request};
use weir_config::Config;
use weir_node::access::new_token;
use weir_proto::v1::control_service_client::ControlServiceClient;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{
    ReloadRequest, ShouldAllowRequest, ShouldAllowStreamRequest, StreamedRequest, WatchEntriesRequest,
    streamed_result,
};

use crate::support::server::{Server, ask};
use crate::support::{SOON, eventually_async, scratch};

struct Guarded {
    folder: TempDir,
    server: Server,
    shop: String,
    ops: String,
}

const OPS: &str = "{ callers: [token:ops], may: [control] }";

fn write(folder: &Path, rules: &str, limit: u64) {
    let text = format!(
        "server: {{ control: true, audit_file: {audit}, admin_open: [metrics], identity: {{ tokens_file: {tokens} }} }}
control: {{ cache_file: {entries} }}
authorize: [{OPS}, {rules}]
strategies: {{ s: {{ limits: [{{ name: l, per: [consumer], token_bucket: {{ rate: {limit}/h }} }}] }} }}
resources: [{{ match: '*', strategy: s }}]
",
        tokens = folder.join("tokens").display(),
        entries = folder.join("entries").display(),
        audit = folder.join("audit").display(),
    );
    fs::write(folder.join("weir.yaml"), text).unwrap();
}

impl Guarded {
    fn start(rules: &str) -> Self {
        let folder = scratch::dir("rules-");
        let ((shop, one), (ops, other)) = (new_token("shop").unwrap(), new_token("ops").unwrap());
        fs::write(folder.path().join("tokens"), format!("{one}\n{other}\n")).unwrap();
        write(folder.path(), rules, 100);
        let config = Config::load(folder.path().join("weir.yaml"), &weir::features::overrides()).unwrap();
        Self { server: Server::ready(config), folder, shop, ops }
    }

    /// Writes other rules, and reads the files.
    async fn reload(&self, channel: &Channel, rules: &str) {
        self.reload_with(channel, rules, 100).await;
    }

    async fn reload_with(&self, channel: &Channel, rules: &str, limit: u64) {
        write(self.folder.path(), rules, limit);
        let mut control = ControlServiceClient::new(channel.clone());
        let report = control.reload(by(&self.ops, ReloadRequest {})).await.unwrap().into_inner();
        assert_eq!(report.mistakes, [""; 0]);
    }
}

/// A request with a token.
fn by<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let value: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

#[tokio::test]
async fn a_reload_takes_a_right_away_and_gives_another_on_open_connections() {
    let guarded = Guarded::start("{ callers: [token:shop], may: [decide], resources: [a] }");
    let channel = guarded.server.channel().await;
    let connections = || connections(&guarded.server);
    let mut client = RateLimitServiceClient::new(channel.clone());
    let mut asks = async |resource: &str| {
        let answer = client.should_allow(by(&guarded.shop, ask(resource, "bob"))).await;
        answer.map_or_else(|status| status.code(), |_| Code::Ok)
    };
    assert_eq!([asks("a").await, asks("b").await], [Code::Ok, Code::PermissionDenied]);
    let before = connections();
    guarded.reload(&channel, "{ callers: [token:shop], may: [decide], resources: [b] }").await;
    assert_eq!([asks("a").await, asks("b").await], [Code::PermissionDenied, Code::Ok], "at the next call");
    guarded.reload(&channel, "{ callers: [token:shop], may: [usage] }").await;
    assert_eq!([asks("a").await, asks("b").await], [Code::PermissionDenied; 2], "also of the method");
    guarded.reload(&channel, "{ callers: [token:shop], may: [decide] }").await;
    assert_eq!([asks("a").await, asks("b").await], [Code::Ok; 2]);
    assert_eq!(connections(), before, "no connection was dropped or opened");
}

/// Questions for `a` are counted by the limit of the files that allow them, whatever the moment.
#[tokio::test]
async fn rights_and_limits_change_together() {
    let rules =
        ["a", "b"].map(|name| format!("{{ callers: [token:shop], may: [decide], resources: [{name}] }}"));
    let guarded = Guarded::start(&rules[0]);
    let channel = guarded.server.channel().await;
    let (asked, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut callers = Vec::new();
    for (resource, limit) in [("a", 100), ("b", 200)] {
        let (asked, done, token) = (Arc::clone(&asked), Arc::clone(&done), guarded.shop.clone());
        let mut client = guarded.server.client().await;
        callers.push(tokio::spawn(async move {
            while !done.load(SeqCst) {
                let request = ShouldAllowRequest { peek: true, ..ask(resource, "bob") };
                let answer = client.should_allow(by(&token, request)).await;
                if let Ok(answer) = answer {
                    assert_eq!(answer.into_inner().limits[0].limit, limit, "the limit of another file");
                    asked.fetch_add(1, SeqCst);
                }
            }
        }));
    }
    for number in 1..=40 {
        let seen = asked.load(SeqCst);
        guarded.reload_with(&channel, &rules[number % 2], [100, 200][number % 2]).await;
        eventually_async(SOON, "calls under these rules", async || asked.load(SeqCst) > seen).await;
    }
    done.store(true, SeqCst);
    for caller in callers {
        caller.await.unwrap();
    }
}

#[tokio::test]
async fn an_open_stream_follows_the_rules_and_a_watch_ends_with_its_right() {
    let guarded =
        Guarded::start("{ callers: [token:shop], may: [decide] }, { callers: [token:shop], may: [control] }");
    let channel = guarded.server.channel().await;
    let (asked, questions) = tokio::sync::mpsc::channel(1);
    let questions = tokio_stream::wrappers::ReceiverStream::new(questions);
    let mut client = RateLimitServiceClient::new(channel.clone());
    let answers = client.should_allow_stream(by(&guarded.shop, questions));
    let question = || StreamedRequest { id: 1, request: Some(ask("a", "bob")) };
    asked.send(ShouldAllowStreamRequest { requests: vec![question()] }).await.unwrap();
    let mut answers = answers.await.unwrap().into_inner();
    let mut code = async || match answers.message().await.unwrap().unwrap().results.remove(0).result {
        Some(streamed_result::Result::Error(error)) => error.code,
        _ => 0,
    };
    assert_eq!(code().await, 0);
    let watched = by(&guarded.shop, WatchEntriesRequest {});
    let mut watch =
        ControlServiceClient::new(channel.clone()).watch_entries(watched).await.unwrap().into_inner();
    guarded.reload(&channel, "{ callers: [token:shop], may: [decide], resources: [b] }").await;
    asked.send(ShouldAllowStreamRequest { requests: vec![question()] }).await.unwrap();
    assert_eq!(code().await, Code::PermissionDenied as i32, "the stream stays open");
    let put = weir_proto::v1::PutAccessRequest {
        access: Some(weir_proto::v1::ControlAccess {
            list: 1,
            consumer: "eve".to_owned(),
            strategy: String::new(),
        }),
        options: None,
    };
    ControlServiceClient::new(channel.clone()).put_access(by(&guarded.ops, put)).await.unwrap();
    assert_eq!(watch.message().await.unwrap_err().code(), Code::PermissionDenied);
    guarded.reload(&channel, "{ callers: [token:shop], may: [decide] }").await;
    asked.send(ShouldAllowStreamRequest { requests: vec![question()] }).await.unwrap();
    assert_eq!(code().await, 0);
}

/// Returns the number of connections that were ever opened.
fn connections(server: &Server) -> String {
    let page = server.get("/metrics").1;
    page.lines().find(|line| line.starts_with("weir_connections")).unwrap().to_owned()
}

#[test]
fn whether_calls_are_checked_at_all_needs_a_restart() {
    let parse = |text: &str| {
        let strategies = "strategies: { s: { limits: [{ name: l, per: [], uniform: { interval: 1s } }] } }\n";
        Config::parse(&format!("{strategies}{text}"), "weir.yaml", &weir::features::overrides()).unwrap()
    };
    let of = |old: &str, new: &str| {
        let changes = parse(old).setting_changes(&parse(new));
        let found = changes.iter().find(|change| change.path == "authorize").unwrap();
        format!("{:?}", found.applies)
    };
    let rules = |caller: &str| format!("authorize: [{{ callers: ['{caller}'], may: [decide] }}]\n");
    assert_eq!(of(&rules("dns:a"), &rules("dns:b")), "AtReload");
    assert_eq!(of("", &rules("dns:b")), "AtRestart");
    assert_eq!(of(&rules("dns:a"), ""), "AtRestart");
}
