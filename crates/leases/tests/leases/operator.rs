//! Leases in the hands of operators, who list them page by page and release them; the same on every store.

use std::collections::HashMap;

use tonic::Code;
use tonic::transport::Channel;
use weir_config::{Config, ServerConfig, StoreConfig};
use weir_core::key::KeySecret;
use weir_core::strategy::{
    AimdRule, ConcurrencyNumbers, ConcurrencyRule, ControllerRule, FailurePolicy, Field, LimitSource,
    Partitions, Resources, Rules, Scope, Strategy,
};
use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::lease_admin_service_client::LeaseAdminServiceClient;
use weir_proto::v1::{
    AcquireRequest, HeldLease, ListLeasesRequest, ListLeasesResponse, ReleaseLeasesRequest, RenewRequest,
};
use weir_units::Micros;

use super::world::{adaptive, numbers};
use crate::support::server::{BASE, Server, config};
use crate::support::stores;

struct Operated {
    server: Server,
    leases: ConcurrencyServiceClient<Channel>,
    admin: LeaseAdminServiceClient<Channel>,
}

fn permits(name: &str, numbers: ConcurrencyNumbers) -> Strategy {
    let rule = ConcurrencyRule::new(numbers).unwrap();
    Strategy::of_leases(name, Scope::new(&[Field::Resource, Field::Consumer]), rule, FailurePolicy::Error)
        .unwrap()
}

impl Operated {
    async fn on(store: StoreConfig) -> Self {
        let shares = vec![("live".into(), 900), ("batch".into(), 100)];
        let partitions = Some(Partitions::new("tier", shares));
        let aimd = ControllerRule::Aimd(AimdRule { backoff: 0.5, timeout: Micros::from_secs(5) });
        let source = LimitSource::Adaptive(adaptive((10, 5, 12), aimd));
        let strategies = vec![
            permits("many", numbers(5_000)),
            permits("tiers", ConcurrencyNumbers { partitions, ..numbers(10) }),
            permits("adaptive", ConcurrencyNumbers { source, ..numbers(0) }),
        ];
        let rules = Rules::new(strategies, Resources::default());
        let settings = config();
        let server = ServerConfig { admin_service: true, ..settings.server.clone() };
        let server =
            Server::ready(Config { store, rules, server, key_secret: Some(KeySecret::random()), ..settings });
        let channel = server.channel().await;
        let leases = ConcurrencyServiceClient::new(channel.clone());
        Self { server, leases, admin: LeaseAdminServiceClient::new(channel) }
    }

    /// Acquires a lease for so many seconds.
    async fn acquire(&mut self, strategy: &str, id: &str, seconds: i64, tier: &str) {
        let request = AcquireRequest {
            resource: "r".to_owned(),
            consumer: "bob".to_owned(),
            strategy: strategy.to_owned(),
            id: id.to_owned(),
            ttl: Some(prost_types::Duration { seconds, nanos: 0 }),
            attributes: HashMap::from([("tier".to_owned(), tier.to_owned())]),
            ..AcquireRequest::default()
        };
        assert!(self.leases.acquire(request).await.unwrap().into_inner().allowed, "{id}");
    }

    async fn page(&mut self, strategy: &str, token: &str) -> Result<ListLeasesResponse, tonic::Status> {
        let request = ListLeasesRequest {
            resource: "r".to_owned(),
            consumer: "bob".to_owned(),
            strategy: strategy.to_owned(),
            attributes: HashMap::new(),
            page_token: token.to_owned(),
        };
        self.admin.list_leases(request).await.map(tonic::Response::into_inner)
    }

    async fn release(
        &mut self,
        strategy: &str,
        ids: &[&str],
        all: bool,
    ) -> Result<(Vec<String>, u64), tonic::Status> {
        let request = ReleaseLeasesRequest {
            resource: "r".to_owned(),
            consumer: "bob".to_owned(),
            strategy: strategy.to_owned(),
            attributes: HashMap::new(),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            all,
        };
        let answer = self.admin.release_leases(request).await?.into_inner();
        Ok((answer.released, answer.left))
    }
}

fn ids(page: &ListLeasesResponse) -> Vec<&str> {
    page.leases.iter().map(|lease| lease.id.as_str()).collect()
}

#[tokio::test]
async fn memory() {
    the_contract(Operated::on(stores::memory()).await).await;
}

#[tokio::test]
async fn redis() {
    the_contract(Operated::on(stores::redis()).await).await;
}

#[tokio::test]
async fn cluster() {
    the_contract(Operated::on(stores::cluster()).await).await;
}

async fn the_contract(mut it: Operated) {
    assert_eq!(it.page("many", "").await.unwrap(), ListLeasesResponse::default());
    pages(&mut it).await;
    releases(&mut it).await;
    no_sample(&mut it).await;
    mistakes(&mut it).await;
}

/// 250 leases, of which many end at the same microsecond: each is on exactly one page.
async fn pages(it: &mut Operated) {
    for index in 0..250 {
        it.acquire("many", &format!("job-{index:03}"), 10 + index / 125, "").await;
    }
    it.server.clock.set(Micros(BASE.0 + 1_000_000));
    let (mut token, mut all, mut sizes) = (String::new(), Vec::new(), Vec::new());
    loop {
        let page = it.page("many", &token).await.unwrap();
        assert_eq!(page.count, 250);
        sizes.push(page.leases.len());
        all.extend(page.leases);
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(sizes, [100, 100, 50]);
    let expected: Vec<String> = (0..250).map(|index| format!("job-{index:03}")).collect();
    assert_eq!(all.iter().map(|lease| &lease.id).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let first = HeldLease {
        id: "job-000".to_owned(),
        weight: 1,
        held_for: seconds(1),
        expires_after: seconds(9),
        partition: String::new(),
    };
    assert_eq!(all[0], first);
    // Those that have ended are not listed, also where the token is of one of them.
    it.server.clock.set(Micros(BASE.0 + 10_000_000));
    let page = it.page("many", &format!("{}:job-050", BASE.0 + 10_000_000)).await.unwrap();
    assert_eq!((page.count, ids(&page)[0]), (125, "job-125"));
    it.acquire("tiers", "one", 30, "batch").await;
    assert_eq!(it.page("tiers", "").await.unwrap().leases[0].partition, "batch");
}

async fn releases(it: &mut Operated) {
    assert_eq!(
        it.release("many", &["job-130", "job-001", "nobody"], false).await.unwrap(),
        (vec!["job-130".to_owned()], 124)
    );
    let lost = RenewRequest {
        resource: "r".to_owned(),
        consumer: "bob".to_owned(),
        strategy: "many".to_owned(),
        id: "job-130".to_owned(),
        ..RenewRequest::default()
    };
    assert!(!it.leases.renew(lost).await.unwrap().into_inner().held, "its holder learns it");
    for index in 0..1_000 {
        it.acquire("many", &format!("more-{index:04}"), 20, "").await;
    }
    let (released, left) = it.release("many", &[], true).await.unwrap();
    assert_eq!((released.len(), left), (1_000, 124));
    assert_eq!(released[0], "job-125", "those that end first");
    let (released, left) = it.release("many", &[], true).await.unwrap();
    assert_eq!((released.len(), left), (124, 0));
    assert_eq!(it.release("many", &[], true).await.unwrap(), (vec![], 0));
    assert_eq!(it.release("tiers", &["one"], false).await.unwrap(), (vec!["one".to_owned()], 0));
}

/// A release by an operator says nothing of the work: the adaptive limit stays.
async fn no_sample(it: &mut Operated) {
    it.acquire("adaptive", "a", 30, "").await;
    it.server.clock.set(Micros(BASE.0 + 20_000_000));
    // It took 10 s, more than the timeout of the controller: as a sample it would halve the limit.
    assert_eq!(it.release("adaptive", &[], true).await.unwrap(), (vec!["a".to_owned()], 0));
    let request = AcquireRequest {
        resource: "r".to_owned(),
        consumer: "bob".to_owned(),
        strategy: "adaptive".to_owned(),
        id: "b".to_owned(),
        ..AcquireRequest::default()
    };
    assert_eq!(it.leases.acquire(request).await.unwrap().into_inner().limit, Some(10));
}

async fn mistakes(it: &mut Operated) {
    for token in ["x", "12", "-1:a", &format!("1:{}", "i".repeat(129))] {
        let error = it.page("many", token).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{token}");
        assert!(error.message().starts_with(&format!("page_token is \"{}", &token[..1])), "{error}");
    }
    let too_many = vec!["i"; 1_001];
    let long = "i".repeat(129);
    let cases: [(&[&str], bool, &str); 5] = [
        (&[], false, "ids is 0 with all = false: name ids, or set `all`, and not both"),
        (&["a"], true, "ids is 1 with all = true: name ids, or set `all`, and not both"),
        (&too_many, false, "ids is 1001 ids: a call releases at most 1000 leases"),
        (&[""], false, "id is \"\": it has 0 bytes; it must have 1 to 128"),
        (&["a", &long], false, "id is \""),
    ];
    for (ids, all, expected) in cases {
        let error = it.release("many", ids, all).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().starts_with(expected), "{error}");
    }
    assert_eq!(it.page("nobody", "").await.unwrap_err().code(), Code::NotFound);
}
