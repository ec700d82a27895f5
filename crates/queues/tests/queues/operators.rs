//! The contract of Browse, Redrive and Purge, through the real server, on every store.

use tonic::Code;
use weir_config::StoreConfig;
use weir_proto::v1::queue_admin_service_client::QueueAdminServiceClient;
use weir_proto::v1::{
    BrowseRequest, BrowsedItem, ItemState, NackRequest, OutcomesRequest, PurgeRequest, RedriveRequest,
    StatsRequest,
};

use super::service::{client, configured, put, server_of, take};
use crate::support::server::Server;
use crate::support::stores;

#[tokio::test]
async fn memory() {
    the_contract(stores::memory()).await;
}

#[tokio::test]
async fn redis() {
    the_contract(stores::redis()).await;
}

#[tokio::test]
async fn cluster() {
    the_contract(stores::cluster()).await;
}

fn server(store: StoreConfig) -> Server {
    let mut config = configured(store);
    config.server.admin_service = true;
    server_of(config)
}

fn browse(queue: &str, max_items: u32, after: &str) -> BrowseRequest {
    BrowseRequest { queue: queue.to_owned(), max_items: Some(max_items), after: after.to_owned() }
}

fn redrive(queue: &str) -> RedriveRequest {
    RedriveRequest { queue: queue.to_owned(), ..Default::default() }
}

fn states(items: &[BrowsedItem]) -> Vec<(&[u8], ItemState, u32, &str)> {
    items.iter().map(|it| (&it.payload[..], it.state(), it.deliveries, &*it.consumer)).collect()
}

async fn the_contract(store: StoreConfig) {
    let server = server(store);
    let mut queues = client(&server).await;
    let mut admin = QueueAdminServiceClient::new(server.channel().await);
    queues.enqueue(put("jobs", &["a", "b", "c"])).await.unwrap();
    let taken = queues.take(take("jobs", 2, None)).await.unwrap().into_inner().items;
    let delay = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
    let ids = vec![taken[0].id.clone()];
    let nack = NackRequest { queue: "jobs".to_owned(), ids, delay, ..Default::default() };
    queues.nack(nack).await.unwrap();
    let page = queues.browse(browse("jobs", 2, "")).await.unwrap().into_inner();
    let wanted: [(&[u8], _, _, _); 2] =
        [(b"a", ItemState::GivenBack, 1, "worker"), (b"b", ItemState::Taken, 1, "worker")];
    assert_eq!((states(&page.items), page.depth), (wanted.to_vec(), 3));
    assert!(page.items[1].due_after.as_ref().is_some_and(|due| due.seconds <= 30));
    let page = queues.browse(browse("jobs", 2, &page.next)).await.unwrap().into_inner();
    assert_eq!((states(&page.items), &*page.next), (vec![(&b"c"[..], ItemState::New, 0, "")], ""));

    // All of them die, and come back.
    for _ in 0..4 {
        let taken = queues.take(take("jobs", 9, None)).await.unwrap().into_inner().items;
        let ids: Vec<_> = taken.into_iter().map(|item| item.id).collect();
        if !ids.is_empty() {
            queues.nack(NackRequest { queue: "jobs".to_owned(), ids, ..Default::default() }).await.unwrap();
        }
    }
    let dead = queues.browse(browse("jobs:dead", 9, "")).await.unwrap().into_inner();
    assert_eq!(states(&dead.items), [(&b"c"[..], ItemState::New, 0, "")], "it was given back three times");
    assert!(!dead.items[0].origin.is_empty());
    let back = admin.redrive(redrive("jobs")).await.unwrap().into_inner();
    assert_eq!(
        (back.item_ids.len(), &*back.next, back.full, back.depth, back.dead_depth),
        (1, "", false, 3, 0)
    );
    let taken = queues.take(take("jobs", 9, None)).await.unwrap().into_inner().items;
    let taken: Vec<_> = taken.iter().map(|item| (&*item.id, item.deliveries)).collect();
    assert_eq!(taken, [(&*back.item_ids[0], 1)]);

    let purge = |queue: &str| PurgeRequest { queue: queue.to_owned() };
    assert_eq!(admin.purge(purge("jobs")).await.unwrap().into_inner().purged, 3);
    let stats = StatsRequest { queue: "jobs".to_owned(), outcomes: 0 };
    let stats = queues.stats(stats).await.unwrap().into_inner();
    assert_eq!((stats.depth, stats.purged, stats.redriven, stats.accepted), (0, 3, 1, 3));

    // Every mistake names its field, its value and its bound, and changes nothing.
    queues.enqueue(put("jobs", &["a"])).await.unwrap();
    for (request, text) in [
        (browse("jobs", 0, ""), "max_items is 0: it must be 1 to 100"),
        (browse("jobs", 101, ""), "max_items is 101: it must be 1 to 100"),
        (
            browse("jobs", 1, "first"),
            "after is \"first\": an id of an item is two numbers with a hyphen between them, such as 1704067200000-0",
        ),
    ] {
        let refused = queues.browse(request).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::InvalidArgument, text));
    }
    let outcomes = OutcomesRequest { queue: "jobs".to_owned(), ..OutcomesRequest::default() };
    for (request, text) in [
        (
            OutcomesRequest { max_items: Some(101), ..outcomes.clone() },
            "max_items is 101: it must be at most 100",
        ),
        (OutcomesRequest { fate: 9, ..outcomes }, "fate is 9: it must be one of the fates, or not set"),
    ] {
        let refused = queues.outcomes(request).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::InvalidArgument, text));
    }
    let most = RedriveRequest { max_items: Some(101), ..redrive("jobs") };
    let refused = admin.redrive(most).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::InvalidArgument, "max_items is 101: it must be 1 to 100")
    );
    for (queue, text) in [
        ("jobs:dead", "name the queue itself, `jobs`: its dead letters come back"),
        ("lists", "queue `lists` has no dead letters"),
        ("forever", "queue `forever` has no dead letters"),
    ] {
        let refused = admin.redrive(redrive(queue)).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::FailedPrecondition, text));
    }
    let unknown = admin.purge(purge("job")).await.unwrap_err();
    let text = "queue: there is no queue `job`; did you mean `jobs`?";
    assert_eq!((unknown.code(), unknown.message()), (Code::NotFound, text));
    let depth = queues.browse(browse("jobs", 1, "")).await.unwrap().into_inner().depth;
    assert_eq!(depth, 1);
}
