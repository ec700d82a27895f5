//! Checks of a node that fails, is late, or lets requests wait, on a virtual clock.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use weir_config::{Config, ConfigOverrides};
use weir_grpc::{CallContext, Methods, Peer};
use weir_node::feature::{CallError, Feature as _, NodeCall};
use weir_proto::v1::{Reason, ShouldAllowResponse};

use super::*;
use crate::codes::INTERNAL;
use crate::settings::HttpSettings;

/// The node of a test.
#[derive(Clone)]
enum Answering {
    Answered(Box<ShouldAllowResponse>),
    Failed(u8),
    /// The decider never answers.
    Silent,
}

struct TestCalls(Methods, Answering);

impl NodeCalls for TestCalls {
    fn serves(&self, _: &str) -> bool {
        true
    }

    fn methods(&self) -> &Methods {
        &self.0
    }

    fn call(&self, _: &'static str, _: CallContext, _: Bytes) -> NodeCall {
        match &self.1 {
            Answering::Answered(answer) => NodeCall::Answered(Ok(answer.encode_to_vec().into())),
            Answering::Failed(code) => NodeCall::Answered(Err(CallError {
                code: *code,
                message: "x".to_owned(),
                details: Vec::new(),
            })),
            Answering::Silent => NodeCall::Waiting(Box::pin(std::future::pending())),
        }
    }
}

/// The settings of a check with these keys besides the needed ones.
fn settings(keys: &str) -> Arc<CheckSettings> {
    let text = format!(
        "strategies: {{ s: {{ limits: [{{ name: l, per: [consumer], uniform: {{ interval: 1s }} }}] }} }}
http: {{ listen: 127.0.0.1:1, checks: {{ api: {{ proxy: caddy, resource: r, strategy: s, consumer: 'text:c'{keys} }} }} }}"
    );
    let sections = crate::HttpFeature.settings().sections.iter().collect();
    let overrides = ConfigOverrides::default().with_sections(sections);
    let config = Config::parse(&text, "test", &overrides).unwrap();
    Arc::clone(&config.section::<HttpSettings>(crate::NAME).unwrap().checks[0])
}

/// Asks once: the status, the decision and the reason, and how long it took.
async fn ask(keys: &str, answering: Answering) -> (u16, String, String, Duration) {
    let metrics = crate::metrics::HttpMetrics::new(Arc::default()).unwrap();
    let check = ProxyCheck::new(settings(keys), metrics.check("api"));
    let calls = TestCalls(Methods::new(Vec::new(), 1 << 16), answering);
    let port = CallsCheck::new(&calls, &Arc::new(Peer::new(PeerAddress::Unknown)));
    let peer = PeerAddress::Unix { uid: None };
    let by = CheckedBy { calls: &calls, check: &port, peer, has_identity: false };
    let begun = monotonic();
    let answer = check.answer(&Request::new(()), &by).await;
    let header = |name| answer.headers()[name].to_str().unwrap().to_owned();
    (answer.status().as_u16(), header("weir-decision"), header("weir-reason"), monotonic() - begun)
}

fn outcome((status, decision, reason, _): &(u16, String, String, Duration)) -> (u16, &str, &str) {
    (*status, decision, reason)
}

fn answered(allowed: bool, reason: Reason) -> Answering {
    let answer = ShouldAllowResponse { allowed, reason: reason.into(), ..ShouldAllowResponse::default() };
    Answering::Answered(Box::new(answer))
}

/// No room and no time are a policy; every other failure is a mistake of the configuration, which passes nothing.
#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_answer_is_a_policy() {
    for code in [UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED, CANCELED] {
        let denied = ask("", Answering::Failed(code)).await;
        assert_eq!(outcome(&denied), (503, "unavailable", "failure"), "{code}");
        let denied = ask(", unavailable_status: 418", Answering::Failed(code)).await;
        assert_eq!(outcome(&denied), (418, "unavailable", "failure"), "{code}");
        let passed = ask(", on_failure: allow", Answering::Failed(code)).await;
        assert_eq!(outcome(&passed), (200, "unavailable", "failure"), "{code}");
    }
    let mistaken = ask(", on_failure: allow", Answering::Failed(INTERNAL)).await;
    assert_eq!(outcome(&mistaken), (500, "unavailable", "configuration"));
    let late = ask("", Answering::Silent).await;
    assert_eq!((outcome(&late), late.3.as_millis() / 10), ((503, "unavailable", "failure"), 10));
    let late = ask(", deadline: 2s, on_failure: allow", Answering::Silent).await;
    assert_eq!((outcome(&late), late.3.as_secs()), ((200, "unavailable", "failure"), 2));
}

#[tokio::test(start_paused = true)]
async fn each_reason_has_its_status() {
    let keys = ", limited_status: 470, never_status: 471, unavailable_status: 472";
    for (allowed, reason, wanted) in [
        (true, Reason::Ok, (200, "allowed", "ok")),
        (true, Reason::AllowList, (200, "allowed", "allow_list")),
        (true, Reason::StoreFailure, (200, "degraded", "store_failure")),
        (false, Reason::Limited, (470, "limited", "limited")),
        (false, Reason::Banned, (470, "banned", "banned")),
        (false, Reason::Never, (471, "never", "never")),
        (false, Reason::DenyList, (471, "denied", "deny_list")),
        (false, Reason::StoreFailure, (472, "degraded", "store_failure")),
    ] {
        assert_eq!(outcome(&ask(keys, answered(allowed, reason)).await), wanted);
    }
}

/// A request waits as long as its decision says, within `max_hold`.
#[tokio::test(start_paused = true)]
async fn requests_are_held() {
    let waiting = |seconds| {
        let wait = Some(prost_types::Duration { seconds, nanos: 0 });
        Answering::Answered(Box::new(ShouldAllowResponse {
            allowed: true,
            reason: Reason::Ok.into(),
            wait,
            ..ShouldAllowResponse::default()
        }))
    };
    let held = ask(", max_hold: 5s", waiting(5)).await;
    assert_eq!((outcome(&held), held.3.as_secs()), ((200, "allowed", "ok"), 5));
    let denied = ask(", max_hold: 5s", waiting(6)).await;
    assert_eq!((outcome(&denied), denied.3.as_secs()), ((429, "limited", "max_hold"), 0));
}
