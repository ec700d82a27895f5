//! The audit: calls that change something for all callers, and refused calls.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request};
use weir_config::Config;
use weir_node::access::new_token;
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::control_service_client::ControlServiceClient;
use weir_proto::v1::lease_admin_service_client::LeaseAdminServiceClient;
use weir_proto::v1::queue_admin_service_client::QueueAdminServiceClient;
use weir_proto::v1::{
    AccessList, ControlAccess, PurgeRequest, PutAccessRequest, RedriveRequest, ReleaseLeasesRequest,
    ReloadRequest, ResetRequest,
};

use crate::support::server::{Server, ask};
use crate::support::{SOON, eventually, scratch};

const FILE: &str = "
server: { control: true, admin_service: true, audit_file: audit.jsonl IDENTITY }
control: { cache_file: entries }
strategies:
  s: { limits: [{ name: l, per: [consumer], fixed_window: { limit: 3, window: 1h } }] }
  jobs: { concurrency: { limit: 4, per: [consumer], ttl: 30s } }
resources: [{ match: x, strategy: s }, { match: y, strategy: jobs }]
queues: { work: { capacity: 10, max_deliveries: 2 } }
";

/// A node on the memory store, and the tokens of an operator and of a shop.
struct Audited {
    folder: TempDir,
    server: Server,
    ops: String,
    shop: String,
}

impl Audited {
    fn start(has_identity: bool) -> Self {
        let folder = scratch::dir("audit-");
        let ((ops, one), (shop, other)) = (new_token("ops").unwrap(), new_token("shop").unwrap());
        fs::write(folder.path().join("tokens"), format!("{one}\n{other}\n")).unwrap();
        let mut text = FILE.replace("IDENTITY", "");
        if has_identity {
            text = FILE.replace("IDENTITY", ", identity: { tokens_file: tokens }");
            text += "authorize:\n  - { callers: [token:ops], may: [control, reset] }\n";
            text += "  - { callers: [token:shop], may: [decide, reset], resources: [z] }\n";
        }
        fs::write(folder.path().join("weir.yaml"), text).unwrap();
        let config = Config::load(folder.path().join("weir.yaml"), &weir::features::overrides()).unwrap();
        Self { server: Server::ready(config), folder, ops, shop }
    }

    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("audit.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits for the lines of a kind.
    fn of_kind(&self, kind: &str, count: usize) -> Vec<Value> {
        let mut found = Vec::new();
        eventually(SOON, "the lines are written", || {
            found = self.lines().into_iter().filter(|line| line["audit"] == kind).collect();
            found.len() >= count
        });
        found
    }

    /// Makes each call of an operator that has one line, and returns their codes.
    async fn operate(&self, token: &str) -> Vec<Code> {
        let channel = self.server.channel().await;
        let reset =
            ResetRequest { resource: "x".to_owned(), consumer: "bob".to_owned(), ..ResetRequest::default() };
        let release = ReleaseLeasesRequest {
            resource: "y".to_owned(),
            consumer: "bob".to_owned(),
            all: true,
            ..ReleaseLeasesRequest::default()
        };
        let redrive = RedriveRequest { queue: "work".to_owned(), ..RedriveRequest::default() };
        let purge = PurgeRequest { queue: "work".to_owned() };
        let mut queues = QueueAdminServiceClient::new(channel.clone());
        let reset = AdminServiceClient::new(channel.clone()).reset(by(token, reset)).await.map(drop);
        let release =
            LeaseAdminServiceClient::new(channel.clone()).release_leases(by(token, release)).await.map(drop);
        let redrive = queues.redrive(by(token, redrive)).await.map(drop);
        let purge = queues.purge(by(token, purge)).await.map(drop);
        let reload = ControlServiceClient::new(channel).reload(by(token, ReloadRequest {})).await.map(drop);
        [reset, release, redrive, purge, reload]
            .map(|done| done.map_or_else(|status| status.code(), |()| Code::Ok))
            .into()
    }
}

/// A request with a token; without one if it is empty.
fn by<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    if !token.is_empty() {
        let value: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", value);
    }
    request
}

const METHODS: [&str; 5] = ["Reset", "ReleaseLeases", "Redrive", "Purge", "Reload"];

#[tokio::test]
async fn each_call_of_an_operator_has_a_line_with_its_caller() {
    let node = Audited::start(true);
    assert_eq!(node.operate(&node.ops).await, [Code::Ok; 5]);
    let lines = node.of_kind("called", 5);
    assert_eq!(lines.iter().map(|line| line["method"].as_str().unwrap()).collect::<Vec<_>>(), METHODS);
    for line in &lines {
        assert_eq!(line["by"], "token:ops", "{line}");
        assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:") && line["at"].is_string(), "{line}");
    }
    assert_eq!(lines[0]["asked"], json!({ "resource": "x", "consumer": "bob" }));
    assert_eq!((&lines[0]["result"], &lines[3]["result"]), (&json!("applied"), &json!({ "items": 0 })));
}

/// Without names, the address of the peer is all that is known of a caller.
#[tokio::test]
async fn without_identity_the_audit_has_the_address() {
    let node = Audited::start(false);
    assert_eq!(node.operate("").await, [Code::Ok; 5]);
    for line in node.of_kind("called", 5) {
        assert!(
            line["by"] == line["peer"] && line["by"].as_str().unwrap().starts_with("127.0.0.1:"),
            "{line}"
        );
    }
    let access = ControlAccess {
        list: AccessList::Deny.into(),
        consumer: "eve".to_owned(),
        ..ControlAccess::default()
    };
    let request = PutAccessRequest { access: Some(access), options: None };
    let mut control = ControlServiceClient::new(node.server.channel().await);
    let put = control.put_access(request).await.unwrap().into_inner().change.unwrap().entry.unwrap();
    assert!(put.by.starts_with("127.0.0.1:") && !put.node.is_empty(), "{put:?}");
    // The id of the change is written alike everywhere.
    let asked = node.of_kind("asked", 1).remove(0);
    assert_eq!((&asked["by"], &asked["change"]), (&json!(put.by), &json!(put.version.unwrap().change)));
}

#[tokio::test]
async fn refused_calls_have_a_line_with_caller_or_address_and_reason() {
    let node = Audited::start(true);
    let (no_right, no_name) = (Code::PermissionDenied, Code::Unauthenticated);
    // The shop may reset resource `z`, so the method itself is open to it.
    assert_eq!(node.operate(&node.shop).await, [no_right; 5]);
    assert_eq!(node.operate("").await, [no_name; 5]);
    assert_eq!(node.operate("wrong").await, [no_name; 5]);
    let lines = node.of_kind("refused", 10);
    let seen: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| (line["method"].as_str().unwrap(), line["reason"].as_str().unwrap()))
        .collect();
    let of = |reason: &'static str| METHODS.map(|method| (method, reason));
    // What is wrong with the credential does not matter: the address had its line of each method within this second.
    assert_eq!(seen[..10], [of("rights"), of("anonymous")].concat());
    assert!(lines[..5].iter().all(|line| line["by"] == "token:shop"), "{lines:?}");
    assert!(
        lines[5..10].iter().all(|line| line["by"].as_str().unwrap().starts_with("127.0.0.1:")),
        "{lines:?}"
    );
    assert_eq!(node.of_kind("called", 0).len(), 0, "a refused call has no second line");
}

#[tokio::test]
async fn a_flood_of_refusals_has_a_line_a_second_and_the_rest_is_counted() {
    let mut node = Audited::start(true);
    let mut client = node.server.client().await;
    const CALLS: u64 = 2_000;
    let begun = std::time::Instant::now();
    for _ in 0..CALLS {
        let refused = client.should_allow(by(&node.shop, ask("x", "bob"))).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
    }
    let seconds = begun.elapsed().as_secs();
    drop(client);
    node.server.stop();
    node.server.ended().unwrap();
    let lines = node.lines();
    let refused: Vec<&Value> = lines.iter().filter(|line| line["audit"] == "refused").collect();
    assert!((1..=seconds + 2).contains(&(refused.len() as u64)), "{} lines in {seconds} s", refused.len());
    assert!(
        refused.iter().all(|line| line["method"] == "ShouldAllow" && line["by"] == "token:shop"),
        "{refused:?}"
    );
    let left_out: u64 = lines.iter().filter_map(|line| line["refusals"].as_u64()).sum();
    assert_eq!(left_out + refused.len() as u64, CALLS);
}

#[test]
fn the_old_key_is_refused_with_the_new_one() {
    let text =
        FILE.replace("IDENTITY", "").replace("cache_file: entries", "cache_file: entries, audit_file: a");
    let error = Config::parse(&text, "weir.yaml", &weir::features::overrides()).unwrap_err().to_string();
    assert!(error.contains("control.audit_file: is now `server.audit_file`"), "{error}");
    let same = FILE.replace("IDENTITY", "").replace("cache_file: entries", "cache_file: audit.jsonl");
    let error = Config::parse(&same, "weir.yaml", &weir::features::overrides()).unwrap_err().to_string();
    assert!(error.contains("control.cache_file: is `server.audit_file` too"), "{error}");
}
