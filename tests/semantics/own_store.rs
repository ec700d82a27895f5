//! The store of the example in crates/store, behind a whole service. Its rows are run by `vectors`.

#[path = "../../crates/store/examples/redb/backend.rs"]
mod backend;
#[path = "../../crates/store/examples/redb/store.rs"]
pub mod store;

use std::path::Path;

use tonic::Code;
use weir_config::Config;
use weir_core::algorithm::Algorithm;
use weir_core::algorithm::budget::{BudgetLimit, CostedLimits, LimitCost};
use weir_core::strategy::{
    ApproximateNumbers, ConcurrencyNumbers, ConcurrencyRule, FailurePolicy, Field, Limit, LimitSource,
    Resources, Rules, Scope, Strategy,
};
use weir_proto::v1::{Cost, ShouldAllowRequest};
use weir_testing::{SOON, eventually};
use weir_units::Micros;

use self::store::RedbStore;
use crate::support::server::{Server, ask_under, config};

fn server(config: Config, file: &Path) -> Server {
    let file = file.to_owned();
    Server::on_backend(config, move |clock| RedbStore::open(&file, clock).unwrap())
}

fn ready(file: &Path) -> Server {
    let server = server(config(), file);
    eventually(SOON, "the service is ready", || server.get("/readyz").0 == 200);
    server
}

#[tokio::test]
async fn a_service_on_it_goes_on_where_the_one_before_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits");
    let mut remaining = Vec::new();
    for _ in 0..2 {
        let mut server = ready(&file);
        let mut client = server.client().await;
        for _ in 0..2 {
            let answer = client.should_allow(ask_under("burst", "r", "bob")).await.unwrap().into_inner();
            assert!(answer.allowed);
            remaining.push(answer.remaining.unwrap());
        }
        server.stop();
        server.ended().unwrap();
    }
    assert_eq!(remaining, [4, 3, 2, 1]);
}

/// Everything else of a node is refused by name, call by call, whatever a reload may bring.
#[tokio::test]
async fn what_it_does_not_offer_is_said_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let scope = || Scope::new(&[Field::Consumer]);
    let rates = |name: &str| {
        let algorithm = Algorithm::fixed_window(9, Micros::from_secs(3600), false, false).unwrap();
        let limit = Limit { name: "each".into(), scope: scope(), algorithm };
        (Strategy::new(name, vec![limit], false, FailurePolicy::Error).unwrap(), algorithm)
    };
    let (counted, _) = rates("counted");
    let numbers = ApproximateNumbers { max_over: 4, nodes: 2, sync: Micros(100_000) };
    let counted = counted.with_approximate(numbers).unwrap();
    let (costed, algorithm) = rates("costed");
    let limit = BudgetLimit { algorithm, cost: LimitCost::Named(0), at_once: false, near_percent: None };
    let costed =
        costed.with_costs(CostedLimits { limits: vec![limit], names: vec!["tokens".into()], hold: None });
    let (source, span) = (LimitSource::Fixed(2), Micros::from_secs(30));
    let permits = ConcurrencyNumbers { source, ttl: span, max_ttl: span, max_weight: None, partitions: None };
    let rule = ConcurrencyRule::new(permits).unwrap();
    let leased = Strategy::of_leases("leased", scope(), rule, FailurePolicy::Error).unwrap();
    let rules = Rules::new(vec![counted, costed, leased], Resources::default());
    let server = server(Config { rules, ..config() }, &folder.path().join("limits"));
    eventually(SOON, "the service is ready", || server.get("/readyz").0 == 200);

    let mut client = server.client().await;
    let cost = Cost { cost: 2, at_least: None };
    let costs = [("tokens".to_owned(), cost)].into_iter().collect();
    let asked = ShouldAllowRequest { costs, ..ask_under("costed", "r", "bob") };
    let refused = [
        ("counting on the node", client.should_allow(ask_under("counted", "r", "bob")).await.unwrap_err()),
        ("costs by limit", client.should_allow(asked).await.unwrap_err()),
        #[cfg(feature = "leases")]
        ("leases", refused_lease(&server).await),
    ];
    for (name, status) in refused {
        assert_eq!(status.code(), Code::FailedPrecondition, "{name}");
        let expected = format!(" has no {name}");
        assert!(status.message().contains(&expected), "{name}: {}", status.message());
    }
}

#[cfg(feature = "leases")]
async fn refused_lease(server: &Server) -> tonic::Status {
    use weir_proto::v1::AcquireRequest;
    use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;

    let (strategy, id) = ("leased".to_owned(), "i".to_owned());
    let (resource, consumer) = ("r".to_owned(), "bob".to_owned());
    let lease = AcquireRequest { resource, consumer, strategy, id, ..AcquireRequest::default() };
    ConcurrencyServiceClient::new(server.channel().await).acquire(lease).await.unwrap_err()
}

#[cfg(feature = "queues")]
#[test]
fn queues_are_refused_at_the_start() {
    use weir_queues::model::{QueueRule, QueueRules};

    let folder = tempfile::tempdir().unwrap();
    let jobs = QueueRule::new("jobs", crate::support::queues::numbers(3)).unwrap();
    let config = weir_queues::with_queues(config(), QueueRules::new(vec![jobs]));
    let why = server(config, &folder.path().join("queues")).ended().unwrap_err();
    assert!(why.contains("the store can keep no queues"), "{why}");
}
