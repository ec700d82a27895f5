//! Shadow strategies: decided for every live call, charged for themselves, counted and never enforced; on every store.

mod changes;
mod config;
mod costs;
mod limits;
mod redis;

use tonic::transport::Channel;
use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{
    DebitRequest, RefundRequest, ResetRequest, ShouldAllowBatchRequest, ShouldAllowRequest,
};

use crate::support::requests::About as _;
use crate::support::server::{Server, ask_under};
use crate::support::{SOON, eventually};

const RULES: &str = "
server: { admin_service: true, workers: 1 }
strategies:
  api:
    limits: [{ name: each, per: [resource, consumer], fixed_window: { limit: 2, window: 1d } }]
    shadow: [looser, tighter]
    on_store_failure: allow
  looser: { limits: [{ name: each, per: [resource, consumer], fixed_window: { limit: 5, window: 1d } }] }
  tighter:
    limits:
      - { name: each, per: [resource, consumer], fixed_window: { limit: 1, window: 1d } }
      - { name: more, per: [resource, consumer], sliding_log: { limit: 3, window: 1d } }
    access: { allow: [keeper] }
  everybody:
    limits: [{ name: all, per: [resource], fixed_window: { limit: 9, window: 1d } }]
    shadow: [looser]
  full:
    limits:
      - { name: none, per: [resource], fixed_window: { limit: 0, window: 1d } }
      - { name: shy, per: [resource], mode: shadow, fixed_window: { limit: 0, window: 1d } }
access: { deny: [mallory] }
overrides: [{ consumer: gold, strategy: looser, limits: { each: { fixed_window: { limit: 9, window: 1d } } } }]
";

fn rules(store: StoreConfig) -> Config {
    let config = Config::parse(RULES, "test", &ConfigOverrides::default()).unwrap();
    Config { store, ..config }
}

/// Counts the decisions of a shadow of `strategy` with this outcome.
fn count(server: &Server, strategy: &str, shadow: &str, outcome: &str) -> u64 {
    server.metric(&format!(
        "weir_shadow_decisions_total{{strategy=\"{strategy}\",shadow=\"{shadow}\",outcome=\"{outcome}\"}}"
    ))
}

/// Waits until the shadow of `api` has decided so often: nobody waits for a shadow.
fn until(server: &Server, shadow: &str, expected: [(&str, u64); 2]) {
    let counts = || expected.map(|(outcome, _)| (outcome, count(server, "api", shadow, outcome)));
    eventually(SOON, &format!("{shadow}: {expected:?}, not {:?}", counts()), || counts() == expected);
}

struct Asking {
    server: Server,
    client: RateLimitServiceClient<Channel>,
    /// A resource of this test alone, also where the store is shared.
    resource: String,
}

impl Asking {
    async fn start(store: StoreConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::ready(rules(store));
        let client = server.client().await;
        Self { server, client, resource: folder.path().display().to_string() }
    }

    async fn allowed(&mut self, request: ShouldAllowRequest) -> bool {
        self.client.should_allow(request).await.unwrap().into_inner().allowed
    }

    fn ask(&self, consumer: &str) -> ShouldAllowRequest {
        ask_under("api", &self.resource, consumer)
    }
}

weir_testing::on_every_store!(holds_on);

async fn holds_on(store: StoreConfig) {
    let mut asking = Asking::start(store).await;
    every_call_is_decided(&mut asking).await;
    who_is_excepted(&mut asking).await;
    what_is_given_back(&mut asking).await;
}

async fn every_call_is_decided(asking: &mut Asking) {
    // Denials of the live strategy are known after the first; its shadows are asked all the same.
    let mut allowed = Vec::new();
    for _ in 0..8 {
        let ask = asking.ask("bob");
        allowed.push(asking.allowed(ask).await);
    }
    assert_eq!(allowed, [true, true, false, false, false, false, false, false]);
    until(&asking.server, "looser", [("allowed", 5), ("denied", 3)]);
    until(&asking.server, "tighter", [("allowed", 1), ("denied", 7)]);
    // A peek is no call. A batch has as many as it has requests.
    let peek = ShouldAllowRequest { peek: true, ..asking.ask("ann") };
    assert!(asking.allowed(peek).await);
    let requests = vec![asking.ask("ann"); 3];
    asking.client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap();
    until(&asking.server, "looser", [("allowed", 8), ("denied", 3)]);
    until(&asking.server, "tighter", [("allowed", 2), ("denied", 9)]);
    // A cost above a limit of the shadow alone.
    let three = ShouldAllowRequest { cost: Some(2), ..asking.ask("eve") };
    assert!(asking.allowed(three).await);
    until(&asking.server, "tighter", [("never", 1), ("denied", 9)]);
    until(&asking.server, "looser", [("allowed", 9), ("denied", 3)]);
    // What is live for some calls and a shadow for others counts twice.
    let own = ask_under("looser", &asking.resource, "bob");
    for _ in 0..5 {
        assert!(asking.allowed(own.clone()).await);
    }
    assert!(!asking.allowed(own).await);
    assert_eq!(count(&asking.server, "api", "looser", "allowed"), 9);
}

async fn who_is_excepted(asking: &mut Asking) {
    for consumer in ["mallory", "keeper", "keeper"] {
        let ask = asking.ask(consumer);
        assert_eq!(asking.allowed(ask).await, consumer == "keeper");
    }
    until(&asking.server, "tighter", [("deny_list", 1), ("allow_list", 2)]);
    let before = count(&asking.server, "api", "looser", "allowed");
    for _ in 0..9 {
        let ask = asking.ask("gold");
        asking.allowed(ask).await;
    }
    until(&asking.server, "looser", [("allowed", before + 9), ("deny_list", 1)]);
    // A shadow that counts by consumer is not decided for a call that names none; the call is.
    let nobody = ask_under("everybody", &asking.resource, "");
    assert!(asking.allowed(nobody).await);
    let error = || count(&asking.server, "everybody", "looser", "error") == 1;
    eventually(SOON, "the shadow lacks a consumer", error);
}

/// The live strategy is not full meanwhile, so that each change is one of the shadow's own state.
async fn what_is_given_back(asking: &mut Asking) {
    let bob = ("changes".to_owned() + &asking.resource, "bob".to_owned(), "api".to_owned());
    let ask = || ShouldAllowRequest { resource: bob.0.clone(), ..ask_under("api", "", "bob") };
    let before = |asking: &Asking, outcome| count(&asking.server, "api", "tighter", outcome);
    let (allowed, denied) = (before(asking, "allowed"), before(asking, "denied"));
    asking.allowed(ask()).await;
    asking.allowed(ask()).await;
    until(&asking.server, "tighter", [("allowed", allowed + 1), ("denied", denied + 1)]);
    let (resource, consumer, strategy) = bob.clone();
    let refund =
        RefundRequest { id: "once".to_owned(), ..RefundRequest::about(&strategy, &resource, &consumer) };
    for _ in 0..2 {
        asking.client.refund(refund.clone()).await.unwrap();
    }
    asking.allowed(ask()).await;
    asking.allowed(ask()).await;
    until(&asking.server, "tighter", [("allowed", allowed + 2), ("denied", denied + 2)]);
    let reset = ResetRequest::about(&strategy, &resource, &consumer);
    AdminServiceClient::new(asking.server.channel().await).reset(reset).await.unwrap();
    let debit = DebitRequest { resource, consumer, strategy, cost: Some(1), ..DebitRequest::default() };
    asking.client.debit(debit).await.unwrap();
    asking.allowed(ask()).await;
    until(&asking.server, "tighter", [("allowed", allowed + 2), ("denied", denied + 3)]);
}
