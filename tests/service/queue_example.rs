//! docs/examples/queue_worker.rs: it works on what comes, gives back what it cannot do now, and ends with the server.

#[path = "../../docs/examples/queue_worker.rs"]
#[allow(unreachable_pub, dead_code)]
mod queue_worker;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_config::Config;
use weir_core::queue::{QueueKind, QueueNumbers, QueueRule, QueueRules};
use weir_proto::v1::queue_service_client::QueueServiceClient;
use weir_proto::v1::{EnqueueRequest, NewItem, StatsRequest, TakenItem};
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
        outcomes: Micros::from_secs(60),
    };
    let queues = QueueRules::new(vec![QueueRule::new("orders", numbers).unwrap()]);
    Server::start(Config { queues, ..config() })
}

#[tokio::test]
async fn a_worker_with_a_subscription() {
    let mut server = server();
    let mut client = QueueServiceClient::new(server.channel().await);
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
    let worker = QueueServiceClient::new(server.channel().await);
    let working = tokio::spawn(work(worker, ("orders", "rust"), 2, handle));
    let orders = ["1", "2", "wait", "4", "5"];
    let items = orders.map(|order| NewItem { payload: order.into(), id: order.to_owned() }).to_vec();
    client.enqueue(EnqueueRequest { queue: "orders".to_owned(), items }).await.unwrap();
    let stats = StatsRequest { queue: "orders".to_owned(), outcomes: 9 };
    let done = async || client.clone().stats(stats.clone()).await.unwrap().into_inner().acked == 5;
    eventually_async(SOON, "all orders are done", done).await;
    let stats = client.stats(stats).await.unwrap().into_inner();
    assert_eq!((stats.depth, stats.redelivered_nack, stats.redelivered_visibility), (0, 1, 0));
    let mut seen = seen.lock().unwrap().clone();
    seen.sort();
    let wanted = [("1", 1), ("2", 1), ("4", 1), ("5", 1), ("wait", 1), ("wait", 2)];
    assert_eq!(seen, wanted.map(|(order, deliveries)| (order.to_owned(), deliveries)));
    server.stop();
    working.await.unwrap().unwrap();
}
