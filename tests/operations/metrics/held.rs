//! Metrics of held permits, and of the age of the oldest item of a queue.

use weir_config::Config;
use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::queue_service_client::QueueServiceClient;
use weir_proto::v1::{AcquireRequest, EnqueueRequest, NewItem, ReleaseRequest};
use weir_units::Micros;

use super::value;
use crate::support::server::{BASE, Server};
use crate::support::{SOON, eventually};

const CONFIG: &str = "
strategies: { jobs: { concurrency: { limit: 2, per: [resource], ttl: 30s } } }
queues: { work: { capacity: 10, max_deliveries: 2 } }
";

#[tokio::test]
async fn gauges_show_permits_and_the_oldest_item() {
    let config = Config::parse(CONFIG, "weir.yaml", &weir::features::overrides()).unwrap();
    let server = Server::ready(config);
    let mut leases = ConcurrencyServiceClient::new(server.channel().await);
    let acquire = |resource: &str, id: &str| AcquireRequest {
        resource: resource.to_owned(),
        strategy: "jobs".to_owned(),
        id: id.to_owned(),
        ..AcquireRequest::default()
    };
    let of =
        |name: &str| value(&server.get("/metrics").1, &format!("weir_permits_{name}{{strategy=\"jobs\"}}"));
    assert_eq!([of("held"), of("limit"), of("keys")], [0.0, 0.0, 0.0]);
    for (resource, id) in [("x", "1"), ("x", "2"), ("x", "3"), ("y", "1")] {
        leases.acquire(acquire(resource, id)).await.unwrap();
    }
    assert_eq!([of("held"), of("limit"), of("keys")], [3.0, 4.0, 2.0]);
    assert_eq!(
        value(&server.get("/metrics").1, "weir_denials_total{strategy=\"jobs\",limit=\"permits\"}"),
        1.0
    );
    let AcquireRequest { resource, strategy, id, .. } = acquire("x", "1");
    let release = ReleaseRequest { resource, strategy, id, ..ReleaseRequest::default() };
    leases.release(release).await.unwrap();
    assert_eq!(of("held"), 2.0);
    let oldest = || value(&server.get("/metrics").1, "weir_queue_oldest_item_seconds{queue=\"work\"}");
    assert_eq!(oldest(), 0.0);
    let items = vec![NewItem { payload: b"work".to_vec(), ..NewItem::default() }];
    let put = EnqueueRequest { queue: "work".to_owned(), items };
    QueueServiceClient::new(server.channel().await).enqueue(put).await.unwrap();
    server.clock.set(Micros(BASE.0 + 90_000_000));
    eventually(SOON, "the store is asked", || oldest() >= 89.0);
}
