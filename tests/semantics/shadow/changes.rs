//! Changes of a live strategy change its shadows: the limits that they name, and reservations that are cancelled.

use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::{CancelReservationRequest, RefundRequest, ReserveRequest, ResetRequest};

use super::{Asking, count};
use crate::support::requests::About as _;
use crate::support::server::{Server, ask_under};
use crate::support::{SOON, eventually};

const RULES: &str = "
server: { admin_service: true, workers: 1 }
strategies:
  api:
    limits:
      - { name: all, per: [resource], fixed_window: { limit: 99, calendar: month } }
      - { name: each, per: [resource, consumer], fixed_window: { limit: 99, calendar: month } }
    shadow: [tight]
  tight:
    limits:
      - { name: all, per: [resource], token_bucket: { rate: 1/365d, burst: 4 } }
      - { name: each, per: [resource, consumer], token_bucket: { rate: 1/365d, burst: 2 } }
  calls:
    limits: [{ name: each, per: [resource, consumer], token_bucket: { rate: 1/1s, burst: 99 } }]
    shadow: [slow]
  slow: { limits: [{ name: each, per: [resource, consumer], token_bucket: { rate: 1/40s, burst: 1 } }] }
";

weir_testing::on_every_store!(holds_on);

async fn holds_on(store: StoreConfig) {
    let config = Config::parse(RULES, "test", &ConfigOverrides::default()).unwrap();
    let server = Server::ready(Config { store, ..config });
    let client = server.client().await;
    let folder = tempfile::tempdir().unwrap();
    let mut asking = Asking { server, client, resource: folder.path().display().to_string() };
    named_limits_are_given_back_and_reset(&mut asking).await;
    a_cancelled_reservation_gives_its_place_back(&mut asking).await;
}

/// Calls once, and waits until the shadow has said this.
async fn call(asking: &mut Asking, consumer: &str, outcome: &str) {
    let before = count(&asking.server, "api", "tight", outcome);
    let ask = ask_under("api", &asking.resource, consumer);
    assert!(asking.allowed(ask).await, "{consumer}");
    let said = || count(&asking.server, "api", "tight", outcome) == before + 1;
    eventually(SOON, &format!("{consumer} is {outcome}"), said);
}

async fn named_limits_are_given_back_and_reset(asking: &mut Asking) {
    let refund = |asking: &Asking, limit: &str, cost| RefundRequest {
        cost: Some(cost),
        limits: vec![limit.to_owned()],
        ..RefundRequest::about("api", &asking.resource, "bob")
    };
    call(asking, "bob", "allowed").await;
    call(asking, "bob", "allowed").await;
    call(asking, "bob", "denied").await;
    let given_back = refund(asking, "each", 2);
    asking.client.refund(given_back).await.unwrap();
    // Two of bob's fit again, and with them `all` is used up: it was not given back.
    call(asking, "bob", "allowed").await;
    call(asking, "bob", "allowed").await;
    call(asking, "ann", "denied").await;
    // A reset that names nothing is about limits that count by consumer.
    let reset = ResetRequest::about("api", &asking.resource, "bob");
    AdminServiceClient::new(asking.server.channel().await).reset(reset).await.unwrap();
    call(asking, "bob", "denied").await;
    let given_back = refund(asking, "all", 4);
    asking.client.refund(given_back).await.unwrap();
    call(asking, "bob", "allowed").await;
    call(asking, "bob", "allowed").await;
    call(asking, "bob", "denied").await;
}

/// Reserves a call, and waits until the shadow has said this.
async fn reserve(asking: &mut Asking, id: &str, outcome: &str) {
    let before = count(&asking.server, "calls", "slow", outcome);
    let request = ReserveRequest {
        resource: asking.resource.clone(),
        consumer: "bob".to_owned(),
        strategy: "calls".to_owned(),
        max_wait: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        id: id.to_owned(),
        ..ReserveRequest::default()
    };
    assert!(asking.client.reserve(request).await.unwrap().into_inner().applied, "{id}");
    let said = || count(&asking.server, "calls", "slow", outcome) == before + 1;
    eventually(SOON, &format!("{id} is {outcome}"), said);
}

/// The live strategy has places for all, and its shadow for two within the longest wait.
async fn a_cancelled_reservation_gives_its_place_back(asking: &mut Asking) {
    reserve(asking, "a", "allowed").await;
    reserve(asking, "b", "allowed").await;
    reserve(asking, "c", "denied").await;
    let cancel = CancelReservationRequest {
        id: "b".to_owned(),
        ..CancelReservationRequest::about("calls", &asking.resource, "bob")
    };
    // The live call has started; the one of the shadow waits.
    assert!(!asking.client.cancel_reservation(cancel).await.unwrap().into_inner().cancelled);
    reserve(asking, "d", "allowed").await;
    reserve(asking, "e", "denied").await;
}
