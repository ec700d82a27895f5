//! docs/examples/queue_worker.rs: it works on what comes, gives back what it cannot do now, and subscribes again when
//! its node goes.

#[path = "../../docs/examples/queue_worker.rs"]
#[allow(unreachable_pub, dead_code)]
mod queue_worker;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tonic::transport::channel::Change;
use tonic::transport::{Channel, Endpoint};
use weir_proto::v1::queue_service_client::QueueServiceClient;
use weir_proto::v1::{EnqueueRequest, NewItem, StatsRequest, StatsResponse, TakenItem};
use weir_queues::model::{
    ArchiveRule, FullQueue, QueueKind, QueueNumbers, QueueOrder, QueueRule, QueueRules,
};
use weir_units::Micros;

use self::queue_worker::{Worked, work};
use crate::support::server::{Server, config};
use crate::support::{SOON, eventually_async};

fn server() -> Server {
    let numbers = QueueNumbers {
        kind: QueueKind::Stream,
        capacity: 100,
        max_bytes: 1 << 20,
        pace: None,
        visibility: Micros::from_secs(30),
        max_deliveries: Some(5),
        outcomes: ArchiveRule::new(Micros::from_secs(60)),
        max_age: None,
        when_full: FullQueue::Refuse,
        order: QueueOrder::Fifo,
    };
    let queues = QueueRules::new(vec![QueueRule::new("orders", numbers).unwrap()]);
    Server::start(weir_queues::with_queues(config(), queues))
}

fn endpoint(server: &Server) -> Endpoint {
    Endpoint::from_shared(format!("http://{}", server.grpc)).unwrap()
}

async fn put(server: &Server, orders: &[&str]) {
    let items = orders.iter().map(|order| NewItem { payload: (*order).into(), id: (*order).to_owned() });
    let request = EnqueueRequest { queue: "orders".to_owned(), items: items.collect() };
    QueueServiceClient::new(server.channel().await).enqueue(request).await.unwrap();
}

/// Waits until so many orders are done.
async fn done(server: &Server, orders: u64) -> StatsResponse {
    let client = QueueServiceClient::new(server.channel().await);
    let stats = StatsRequest { queue: "orders".to_owned(), outcomes: 9 };
    let stats = async || client.clone().stats(stats.clone()).await.unwrap().into_inner();
    eventually_async(SOON, "all orders are done", async || stats().await.acked == orders).await;
    stats().await
}

/// A subscription ended with OK when its node was replaced, so workers took that for the end of all work.
#[tokio::test]
async fn a_worker_goes_on_with_the_next_node() {
    let mut server = server();
    let seen: Arc<Mutex<Vec<(String, u32)>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let handle = move |item: TakenItem| {
        let order = String::from_utf8(item.payload).unwrap();
        noted.lock().unwrap().push((order.clone(), item.deliveries));
        async move {
            match item.deliveries {
                1 if order == "wait" => Worked::NotNow(Duration::ZERO),
                _ => Worked::Done(format!("shipped {order}")),
            }
        }
    };
    let (channel, nodes) = Channel::balance_channel(2);
    nodes.send(Change::Insert("first", endpoint(&server))).await.unwrap();
    let worker = QueueServiceClient::new(channel);
    let working = tokio::spawn(work(worker, ("orders", "rust"), 2, handle));
    put(&server, &["1", "2", "wait", "4", "5"]).await;
    let stats = done(&server, 5).await;
    assert_eq!((stats.depth, stats.redelivered_nack, stats.redelivered_visibility), (0, 1, 0));
    let mut seen = seen.lock().unwrap().clone();
    seen.sort();
    let wanted = [("1", 1), ("2", 1), ("4", 1), ("5", 1), ("wait", 1), ("wait", 2)];
    assert_eq!(seen, wanted.map(|(order, deliveries)| (order.to_owned(), deliveries)));
    let next = self::server();
    nodes.send(Change::Insert("next", endpoint(&next))).await.unwrap();
    nodes.send(Change::Remove("first")).await.unwrap();
    server.stop();
    put(&next, &["6"]).await;
    done(&next, 1).await;
    assert!(!working.is_finished());
    working.abort();
}

#[tokio::test]
async fn a_worker_ends_when_it_is_refused() {
    let server = server();
    let worker = QueueServiceClient::new(server.channel().await);
    let status =
        work(worker, ("order", "rust"), 2, |_: TakenItem| async { Worked::Done(String::new()) }).await;
    assert_eq!(status.code(), tonic::Code::NotFound, "{status}");
}
