//! Reservations beside costs by limit: of a fixed cost, and of a limit that no call holds.

use prost_types::Duration;
use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::{CancelReservationRequest, ReserveRequest};

use crate::support::requests::About as _;
use crate::support::server::{Server, config};

weir_testing::on_every_store!(a_fixed_cost_is_reserved_and_given_back);

const RULES: &str = "
strategies:
  paced: { limits: [{ name: tokens, per: [consumer], cost: 5, token_bucket: { rate: 1/10s, burst: 5 } }] }
  at-once:
    hold: { max: 1m }
    limits: [{ name: tokens, per: [consumer], charge: at_once, token_bucket: { rate: 1/10m, burst: 10 } }]
";

/// A reservation of bob's.
pub fn reserve(strategy: &str, id: &str) -> ReserveRequest {
    ReserveRequest {
        resource: "refused".to_owned(),
        consumer: "bob".to_owned(),
        strategy: strategy.to_owned(),
        id: id.to_owned(),
        max_wait: Some(Duration { seconds: 60, nanos: 0 }),
        ..ReserveRequest::default()
    }
}

/// A reservation takes the fixed cost, and also a limit that a hold charges at once takes reservations.
async fn a_fixed_cost_is_reserved_and_given_back(store: StoreConfig) {
    let rules = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap().rules;
    let server = Server::ready(Config { store, rules, ..config() });
    let mut client = server.client().await;
    for id in ["one", "two"] {
        let reserved = client.reserve(reserve("paced", id)).await.unwrap().into_inner();
        let limit = &reserved.decision.unwrap().limits[0];
        assert_eq!((reserved.applied, limit.allowed, limit.cost, limit.granted), (true, true, 5, 5), "{id}");
    }
    let denied = client.reserve(reserve("paced", "three")).await.unwrap().into_inner().decision.unwrap();
    assert_eq!((denied.allowed, denied.limits[0].remaining, denied.limits[0].granted), (false, 0, 0));
    let cancel = CancelReservationRequest {
        id: "two".to_owned(),
        ..CancelReservationRequest::about("paced", "refused", "bob")
    };
    assert!(client.cancel_reservation(cancel).await.unwrap().into_inner().cancelled);
    let again = client.reserve(reserve("paced", "three")).await.unwrap().into_inner();
    assert!(again.applied && again.wait.unwrap().seconds > 40, "{again:?}");
    let mut at_once = ReserveRequest { cost: Some(4), ..reserve("at-once", "one") };
    assert!(client.reserve(at_once.clone()).await.unwrap().into_inner().decision.unwrap().allowed);
    (at_once.id, at_once.cost) = ("two".to_owned(), Some(7));
    let denied = client.reserve(at_once).await.unwrap().into_inner().decision.unwrap();
    assert_eq!((denied.allowed, denied.limits[0].remaining), (false, 6));
}
