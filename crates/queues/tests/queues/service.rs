//! The contract of `QueueService`, through the real server, on every store.

use std::time::Duration;

use tonic::transport::Channel;
use tonic::{Code, Status};
use weir_config::{Config, StoreConfig};
use weir_core::key::KeySecret;
use weir_proto::v1::queue_service_client::QueueServiceClient;
use weir_proto::v1::{
    AckRequest, DeliveryCause, EnqueueRequest, EnqueueResponse, ExtendRequest, ItemFate, NackRequest,
    NewItem, OutcomeTotals, OutcomesRequest, Reason, StatsRequest, SubscribeRequest, TakeRequest, TakenItem,
};
use weir_queues::model::{QueueKind, QueueNumbers, QueueRule, QueueRules};
use weir_units::Micros;

use super::world::numbers;
use crate::support::server::{BASE, Server, config};
use crate::support::stores;

pub type Client = QueueServiceClient<Channel>;

fn rules() -> QueueRules {
    let list = QueueNumbers { kind: QueueKind::List, max_deliveries: None, ..numbers(3) };
    let queue = |name, numbers| QueueRule::new(name, numbers).unwrap();
    let forever = QueueNumbers { max_deliveries: None, ..numbers(3) };
    let wide = QueueNumbers { max_bytes: 64 << 20, ..numbers(1000) };
    QueueRules::new(vec![
        queue("jobs", numbers(3)),
        queue("lists", list),
        queue("forever", forever),
        queue("wide", wide),
    ])
}

/// With keys of its own on a store that tests share.
pub fn server(store: StoreConfig) -> Server {
    server_of(configured(store))
}

pub fn configured(store: StoreConfig) -> Config {
    weir_queues::with_queues(Config { store, key_secret: Some(KeySecret::random()), ..config() }, rules())
}

pub fn server_of(config: Config) -> Server {
    Server::ready(config)
}

pub async fn client(server: &Server) -> Client {
    QueueServiceClient::new(server.channel().await).max_decoding_message_size(8 << 20)
}

pub fn put(queue: &str, payloads: &[&str]) -> EnqueueRequest {
    let item = |payload: &&str| NewItem { payload: payload.as_bytes().to_vec(), id: String::new() };
    EnqueueRequest { queue: queue.to_owned(), items: payloads.iter().map(item).collect() }
}

pub fn take(queue: &str, max_items: u32, max_wait: Option<u64>) -> TakeRequest {
    TakeRequest {
        queue: queue.to_owned(),
        consumer: "worker".to_owned(),
        max_items: Some(max_items),
        max_wait: max_wait.map(|seconds| prost_types::Duration { seconds: seconds as i64, nanos: 0 }),
    }
}

async fn enqueued(client: &mut Client, request: EnqueueRequest) -> EnqueueResponse {
    client.enqueue(request).await.unwrap().into_inner()
}

async fn taken(client: &mut Client, queue: &str, max_items: u32) -> Vec<TakenItem> {
    client.take(take(queue, max_items, None)).await.unwrap().into_inner().items
}

#[tokio::test]
async fn memory() {
    the_contract(&server(stores::memory())).await;
}

#[tokio::test]
async fn redis() {
    the_contract(&server(stores::redis())).await;
}

#[tokio::test]
async fn cluster() {
    the_contract(&server(stores::cluster())).await;
}

async fn the_contract(server: &Server) {
    let mut client = client(server).await;
    let first = enqueued(&mut client, put("jobs", &["a", "b"])).await;
    assert_eq!((first.accepted, first.added, first.depth, first.capacity), (true, 2, 2, 3));
    assert_eq!((first.reason(), first.item_ids.len()), (Reason::Ok, 2));
    let full = enqueued(&mut client, put("jobs", &["c", "d"])).await;
    let wanted = EnqueueResponse { depth: 2, capacity: 3, reason: Reason::Full.into(), ..Default::default() };
    assert_eq!(full, wanted, "a full queue is an answer");
    let never = enqueued(&mut client, put("jobs", &["c"; 4])).await;
    assert_eq!((never.accepted, never.reason()), (false, Reason::Never));

    let items = taken(&mut client, "jobs", 9).await;
    let wanted = |index: usize, payload: &str| TakenItem {
        id: first.item_ids[index].clone(),
        payload: payload.into(),
        deliveries: 1,
        cause: DeliveryCause::First.into(),
        ..TakenItem::default()
    };
    let visible_for = items[0].visible_for;
    assert_eq!(visible_for.map(|span| span.seconds), Some(30), "the visibility of the queue");
    assert_ne!(items[0].token, 0);
    let known = TakenItem { visible_for, token: items[0].token, ..TakenItem::default() };
    let wanted =
        |index, payload: &str| TakenItem { visible_for, token: known.token, ..wanted(index, payload) };
    assert_eq!(items, [wanted(0, "a"), wanted(1, "b")]);
    let ack = |id: &str| AckRequest {
        tokens: Vec::new(),
        queue: "jobs".to_owned(),
        ids: vec![id.to_owned()],
        outcome: "ok".to_owned(),
    };
    let acked = client.ack(ack(&items[0].id)).await.unwrap().into_inner();
    assert_eq!((acked.acked, acked.depth), (vec![true], 1));
    assert_eq!(client.ack(ack(&items[0].id)).await.unwrap().into_inner().acked, [false]);
    comes_again(server, &mut client, &items[1]).await;
    let stats =
        client.stats(StatsRequest { queue: "jobs".to_owned(), outcomes: 5 }).await.unwrap().into_inner();
    assert_eq!((stats.depth, stats.capacity, stats.unacked, stats.dead_depth), (0, 3, 0, 0));
    assert_eq!((stats.accepted, stats.first_deliveries, stats.acked, stats.dead_lettered), (2, 2, 1, 1));
    assert_eq!((stats.redelivered_nack, stats.redelivered_visibility), (1, 1));
    let newest: Vec<_> = stats.newest.iter().map(|it| (it.fate(), it.outcome.as_str())).collect();
    assert_eq!((stats.outcomes, newest), (2, vec![(ItemFate::DeadLettered, ""), (ItemFate::Acked, "ok")]));
    let only = |max_items| OutcomesRequest {
        queue: "jobs".to_owned(),
        fate: ItemFate::Acked.into(),
        outcome: "ok".to_owned(),
        max_items: Some(max_items),
        ..OutcomesRequest::default()
    };
    for (max_items, shown) in [(9, vec![stats.newest[1].clone()]), (0, Vec::new())] {
        let found = client.outcomes(only(max_items)).await.unwrap().into_inner();
        let totals = Some(OutcomeTotals { acked: 1, ..OutcomeTotals::default() });
        assert_eq!((found.outcomes, found.totals, found.next.as_str()), (shown, totals, ""));
    }
    let dead = StatsRequest { queue: "jobs:dead".to_owned(), outcomes: 5 };
    let dead = client.stats(dead).await.unwrap().into_inner();
    assert_eq!((dead.accepted, dead.acked, dead.newest[0].outcome.as_str()), (1, 1, "looked at"));

    assert!(enqueued(&mut client, put("lists", &["1", "2", "3"])).await.accepted);
    assert_eq!(taken(&mut client, "lists", 2).await.len(), 2);
    assert!(enqueued(&mut client, put("lists", &["4", "5"])).await.accepted, "its places are free");
    let rest: Vec<_> = taken(&mut client, "lists", 9).await.into_iter().map(|item| item.payload).collect();
    assert_eq!(rest, [b"3", b"4", b"5"]);
    the_largest_call(&mut client).await;
    subscribes(server, &mut client).await;
}

/// A Nack, a visibility that ends, and then the dead letters.
async fn comes_again(server: &Server, client: &mut Client, item: &TakenItem) {
    let delay = Some(prost_types::Duration { seconds: 5, nanos: 0 });
    let nack =
        NackRequest { tokens: Vec::new(), queue: "jobs".to_owned(), ids: vec![item.id.clone()], delay };
    let nacked = client.nack(nack.clone()).await.unwrap().into_inner();
    assert_eq!((nacked.nacked, nacked.dead_lettered, nacked.depth), (vec![true], 0, 1));
    assert_eq!(taken(client, "jobs", 1).await, []);
    server.clock.set(Micros(BASE.0 + 5_000_000));
    let again = taken(client, "jobs", 1).await;
    let (cause, had) = (again[0].cause(), again[0].previous_consumer.as_str());
    assert_eq!((cause, again[0].deliveries, had), (DeliveryCause::Nack, 2, "worker"));
    server.clock.set(Micros(BASE.0 + 35_000_000));
    let again = taken(client, "jobs", 1).await;
    assert_eq!((again[0].cause(), again[0].deliveries), (DeliveryCause::Visibility, 3));
    // The worker that was too slow does not take it from its new owner.
    let stale = NackRequest { tokens: vec![item.token], ..nack.clone() };
    assert_eq!(client.nack(stale.clone()).await.unwrap().into_inner().nacked, [false]);
    let two = NackRequest { tokens: vec![item.token; 2], ..stale };
    let refused = client.nack(two).await.unwrap_err();
    assert_eq!(refused.message(), "tokens is 2 entries: there must be none, or one for each of the 1 ids");
    let extend = ExtendRequest {
        queue: "jobs".to_owned(),
        ids: vec![item.id.clone()],
        tokens: vec![again[0].token],
        visibility: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
    };
    assert_eq!(client.extend(extend.clone()).await.unwrap().into_inner().extended, [true]);
    for visibility in [None, Some(prost_types::Duration { seconds: 86_401, nanos: 0 })] {
        let refused = client.extend(ExtendRequest { visibility, ..extend.clone() }).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        assert!(refused.message().starts_with("visibility is "), "{}", refused.message());
    }
    let nack = NackRequest { tokens: vec![again[0].token], ..nack };
    let nacked = client.nack(nack).await.unwrap().into_inner();
    assert_eq!((nacked.dead_lettered, nacked.depth), (1, 0));
    let dead = taken(client, "jobs:dead", 9).await;
    assert_eq!((dead.len(), dead[0].origin.as_str(), &*dead[0].payload), (1, item.id.as_str(), &b"b"[..]));
    let ids = vec![dead[0].id.clone()];
    let ack = AckRequest {
        tokens: Vec::new(),
        queue: "jobs:dead".to_owned(),
        ids,
        outcome: "looked at".to_owned(),
    };
    assert_eq!(client.ack(ack).await.unwrap().into_inner().acked, [true]);
}

/// As many items as a call may have, each as large as it may be.
async fn the_largest_call(client: &mut Client) {
    let large = "x".repeat(65_536);
    assert!(enqueued(client, put("wide", &vec![&*large; 100])).await.accepted);
    let mut left = 100;
    while left > 0 {
        let items = taken(client, "wide", 100).await;
        assert_eq!(items.len(), left.min(16));
        assert!(items.iter().all(|item| item.payload.len() == 65_536));
        left -= items.len();
        let ids = items.into_iter().map(|item| item.id).collect();
        client
            .ack(AckRequest { tokens: Vec::new(), queue: "wide".to_owned(), ids, outcome: String::new() })
            .await
            .unwrap();
    }
}

/// The server sends what there is credit for, and no more.
async fn subscribes(server: &Server, client: &mut Client) {
    let (credits, sent) = tokio::sync::mpsc::channel(4);
    credits.send(credit(2)).await.unwrap();
    let requests = tokio_stream::wrappers::ReceiverStream::new(sent);
    let mut items = client.subscribe(requests).await.unwrap().into_inner();
    assert!(enqueued(client, put("forever", &["1", "2", "3"])).await.accepted);
    let mut got: Vec<String> = Vec::new();
    while got.len() < 2 {
        let message = items.message().await.unwrap().unwrap();
        got.extend(message.items.into_iter().map(|item| String::from_utf8(item.payload).unwrap()));
    }
    assert_eq!(got, ["1", "2"]);
    let stats = client.stats(StatsRequest { queue: "forever".to_owned(), outcomes: 0 }).await.unwrap();
    assert_eq!(stats.into_inner().unacked, 2, "the third has no credit");
    credits.send(credit(1)).await.unwrap();
    let third = items.message().await.unwrap().unwrap();
    assert_eq!((third.items.len(), &*third.items[0].payload), (1, &b"3"[..]));
    // Nobody acks them, so they come again.
    credits.send(credit(100)).await.unwrap();
    server.clock.set(Micros(BASE.0 + 120_000_000));
    let again = items.message().await.unwrap().unwrap();
    assert_eq!((again.items.len(), again.items[0].deliveries), (3, 2));
    drop(credits);
}

fn credit(credit: u32) -> SubscribeRequest {
    SubscribeRequest { queue: "forever".to_owned(), consumer: "s".to_owned(), credit }
}

/// A worker cannot tell the end of a node from the end of the work, if both are OK.
#[tokio::test]
async fn a_node_that_goes_ends_subscriptions_with_unavailable() {
    let mut server = server(stores::memory());
    let mut client = client(&server).await;
    let mut open = Vec::new();
    for number in [0, 3] {
        let (credits, sent) = tokio::sync::mpsc::channel(1);
        credits.send(credit(number)).await.unwrap();
        let requests = tokio_stream::wrappers::ReceiverStream::new(sent);
        open.push((credits, client.subscribe(requests).await.unwrap().into_inner()));
    }
    server.stop();
    for (credits, mut items) in open {
        let status = items.message().await.unwrap_err();
        let wanted = "this node is shutting down: subscribe on another one";
        assert_eq!((status.code(), status.message()), (Code::Unavailable, wanted));
        drop(credits);
    }
}

/// A worker that only wants so many items sends one message and closes its side.
#[tokio::test]
async fn a_half_closed_subscription_gets_what_it_has_credit_for() {
    let server = server(stores::memory());
    let mut client = client(&server).await;
    let mut items = client.subscribe(tokio_stream::once(credit(2))).await.unwrap().into_inner();
    let mut got = 0;
    for item in ["1", "2"] {
        assert!(enqueued(&mut client, put("forever", &[item])).await.accepted);
        got += items.message().await.unwrap().unwrap().items.len();
    }
    assert_eq!(got, 2);
    assert_eq!(items.message().await.unwrap(), None, "the credit is used, and none can come");
}

#[tokio::test]
async fn a_mistake_is_named_with_its_value_and_its_bound() {
    let server = server(stores::memory());
    let mut client = client(&server).await;
    let code_and_message = |status: Status| (status.code(), status.message().to_owned());
    let invalid = |message: &str| (Code::InvalidArgument, message.to_owned());
    let large = "x".repeat(65_537);
    let long = "y".repeat(129);
    let shown = "y".repeat(64);
    let with_ids = |ids: &[&str]| EnqueueRequest {
        queue: "jobs".to_owned(),
        items: ids.iter().map(|id| NewItem { payload: vec![], id: (*id).to_owned() }).collect(),
    };
    for (request, wanted) in [
        (put("jobs", &[]), invalid("items is 0 entries: there must be 1 to 100")),
        (put("jobs", &["x"; 101]), invalid("items is 101 entries: there must be 1 to 100")),
        (put("jobs", &[&large]), invalid("payload is 65537 bytes: an item has at most 65536 bytes")),
        (
            with_ids(&[&long]),
            invalid(&format!("id is \"{shown}…\": it has 129 bytes; it must have 0 to 128")),
        ),
        (with_ids(&["a", "a"]), invalid("id is \"a\": two items of one call cannot have the same id")),
        (
            put("job", &["x"]),
            (Code::NotFound, "queue: there is no queue `job`; did you mean `jobs`?".to_owned()),
        ),
        (put("", &["x"]), (Code::NotFound, "queue: there is no queue ``".to_owned())),
        (
            put("jobs:dead", &["x"]),
            (
                Code::FailedPrecondition,
                "nobody can put items into `jobs:dead`; put them into its queue".to_owned(),
            ),
        ),
    ] {
        assert_eq!(code_and_message(client.enqueue(request).await.unwrap_err()), wanted);
    }
    let good = take("jobs", 1, None);
    let consumer = |consumer: &str| TakeRequest { consumer: consumer.to_owned(), ..good.clone() };
    for (request, wanted) in [
        (consumer(""), invalid("consumer is \"\": it has 0 bytes; it must have 1 to 128")),
        (take("jobs", 0, None), invalid("max_items is 0: it must be 1 to 100")),
        (take("jobs", 101, None), invalid("max_items is 101: it must be 1 to 100")),
        (take("jobs", 1, Some(301)), invalid("max_wait is 301s: it must be at most 300s")),
        (
            take("forever:dead", 1, None),
            (Code::NotFound, "queue: there is no queue `forever:dead`; did you mean `forever`?".to_owned()),
        ),
    ] {
        assert_eq!(code_and_message(client.take(request).await.unwrap_err()), wanted);
    }
    let ack = |queue: &str, ids: &[&str], outcome: &str| AckRequest {
        tokens: Vec::new(),
        queue: queue.to_owned(),
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        outcome: outcome.to_owned(),
    };
    let id_rule = "an id of an item is two numbers with a hyphen between them, such as 1704067200000-0";
    let long_outcome = "y".repeat(1025);
    for (request, wanted) in [
        (ack("jobs", &[], ""), invalid("ids is 0 entries: there must be 1 to 100")),
        (ack("jobs", &["1"], ""), invalid(&format!("ids is \"1\": {id_rule}"))),
        (
            ack("jobs", &["1-1"], &long_outcome),
            invalid(&format!("outcome is \"{shown}…\": it has 1025 bytes; it must have 0 to 1024")),
        ),
        (
            ack("lists", &["1-1"], ""),
            (
                Code::FailedPrecondition,
                "queue `lists` is a list: its items are gone as soon as they are taken, and are neither acked, nacked nor extended"
                    .to_owned(),
            ),
        ),
    ] {
        assert_eq!(code_and_message(client.ack(request).await.unwrap_err()), wanted);
    }
    let delay = Some(prost_types::Duration { seconds: 86_401, nanos: 0 });
    let nack =
        NackRequest { tokens: Vec::new(), queue: "jobs".to_owned(), ids: vec!["1-1".to_owned()], delay };
    assert_eq!(
        code_and_message(client.nack(nack).await.unwrap_err()),
        invalid("delay is 86401s: it must be at most 86400s")
    );
    let stats = StatsRequest { queue: "jobs".to_owned(), outcomes: 101 };
    assert_eq!(
        code_and_message(client.stats(stats).await.unwrap_err()),
        invalid("outcomes is 101: it must be at most 100")
    );
    let credit = SubscribeRequest { queue: "jobs".to_owned(), consumer: "s".to_owned(), credit: 10_001 };
    let refused = client.subscribe(tokio_stream::once(credit)).await.unwrap_err();
    let wanted = "credit is 10001, beside 0 that are not used: together they must be at most 10000";
    assert_eq!(code_and_message(refused), invalid(wanted));
}

/// A call of a second is no proof of speed; it ends when the item comes, and not by its own wait.
#[tokio::test]
async fn an_answer_of_nothing_comes_after_the_wait() {
    let server = server(stores::memory());
    let mut client = client(&server).await;
    let mut request = tonic::Request::new(take("jobs", 1, Some(60)));
    request.set_timeout(Duration::from_millis(300));
    let empty = client.take(request).await.unwrap().into_inner();
    assert_eq!(empty.items, [], "it answers before the caller stops waiting");
}
