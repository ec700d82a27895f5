//! docs/examples/lease.rs: it renews at a third of the ttl, gives the lease back, and stops what has lost it.

#[path = "../../docs/examples/lease.rs"]
#[allow(unreachable_pub, dead_code)]
mod lease;

use tokio::sync::oneshot;
use weir_config::Config;
use weir_core::strategy::{
    ConcurrencyNumbers, ConcurrencyRule, FailurePolicy, Field, LimitSource, Resources, Rules, Scope, Strategy,
};
use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::{AcquireRequest, WorkOutcome};
use weir_units::Micros;

use self::lease::{LeasedWork, with_lease};
use crate::support::server::{BASE, Server, config};
use crate::support::{SOON, eventually_async};

/// Real time passes between renewals, and none at the server.
const TTL: Micros = Micros::from_millis(300);

fn server() -> Server {
    let numbers = ConcurrencyNumbers {
        source: LimitSource::Fixed(1),
        ttl: TTL,
        max_ttl: TTL,
        max_weight: None,
        partitions: None,
    };
    let scope = Scope::new(&[Field::Resource]);
    let rule = ConcurrencyRule::new(numbers).unwrap();
    let strategy = Strategy::of_leases("exports", scope, rule, FailurePolicy::Error).unwrap();
    Server::start(Config { rules: Rules::new(vec![strategy], Resources::default()), ..config() })
}

fn request(id: &str) -> AcquireRequest {
    let (resource, strategy) = ("r".to_owned(), "exports".to_owned());
    AcquireRequest { resource, strategy, id: id.to_owned(), ..Default::default() }
}

fn renewals(server: &Server, outcome: &str) -> u64 {
    server.metric(&format!(
        "weir_lease_calls_total{{strategy=\"exports\",call=\"renew\",outcome=\"{outcome}\"}}"
    ))
}

#[tokio::test]
async fn work_under_a_lease() {
    let server = server();
    let client = ConcurrencyServiceClient::new(server.channel().await);
    let (finish, finished) = oneshot::channel::<()>();
    let work = async move {
        finished.await.unwrap();
        (7, WorkOutcome::Success)
    };
    let done = tokio::spawn(with_lease(client.clone(), request("a"), work));
    eventually_async(SOON, "it is renewed again and again", async || renewals(&server, "held") >= 3).await;
    let refused = with_lease(client.clone(), request("b"), async { ((), WorkOutcome::Success) }).await;
    assert!(matches!(refused.unwrap(), LeasedWork::Refused(answer) if answer.in_flight == Some(1)));
    finish.send(()).unwrap();
    assert!(matches!(done.await.unwrap().unwrap(), LeasedWork::Done(7)));
    let next = with_lease(client, request("b"), async { (8, WorkOutcome::Success) }).await;
    assert!(matches!(next.unwrap(), LeasedWork::Done(8)), "the permit was given back");
}

#[tokio::test]
async fn work_whose_lease_is_lost() {
    let server = server();
    let client = ConcurrencyServiceClient::new(server.channel().await);
    let forever = std::future::pending::<((), WorkOutcome)>();
    let stopped = tokio::spawn(with_lease(client.clone(), request("a"), forever));
    eventually_async(SOON, "it is renewed", async || renewals(&server, "held") >= 1).await;
    // As if the holder had been paused for as long.
    server.clock.set(Micros(BASE.0 + TTL.0));
    assert!(matches!(stopped.await.unwrap().unwrap(), LeasedWork::Lost));
    assert_eq!(renewals(&server, "not_held"), 1);
}
