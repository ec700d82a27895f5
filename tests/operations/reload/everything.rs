//! A reload adds the first of everything, and removes it again: permits, a queue, an engine, a shadow, a group, a message.

use tonic::Code;
use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::queue_service_client::QueueServiceClient;
use weir_proto::v1::{AcquireRequest, EnqueueRequest, NewItem, ReleaseRequest, TakeRequest};
use weir_testing::RedisServer;

use super::*;

/// The addition to `limited_to(3)`.
const MORE: &str = "
  log: { limits: [{ name: l, per: [consumer], sliding_log: { limit: 2, window: 1h } }] }
  live: { limits: [{ name: l, per: [consumer], fixed_window: { limit: 9, window: 1h } }], shadow: [log] }
  jobs: { concurrency: { limit: 4, per: [consumer], ttl: 30s } }
";

fn with_more(store: &str) -> String {
    let (strategies, resources) = (
        "strategies:\n  s: { limits: [{ name: l, per: [consumer], fixed_window: { limit: 3, \
         window: 1h } }] }",
        "resources:\n  - { match: x, strategy: s }",
    );
    format!(
        "{store}{strategies}{MORE}{resources}\n  - {{ match: 'y/*', strategy: log, group: together }}\n\
         queues: {{ work: {{ capacity: 10 }} }}\nmessages: {{ limited: 'Wait {{wait}}' }}\n"
    )
}

async fn check(store: &str, start: impl Fn(TempDir) -> Configured) {
    let folder = scratch::dir("reload-");
    fs::write(folder.path().join("weir.yaml"), format!("{store}{}", limited_to(3))).unwrap();
    let service = start(folder);
    let channel = service.server.channel().await;
    let (mut leases, mut queues) =
        (ConcurrencyServiceClient::new(channel.clone()), QueueServiceClient::new(channel));
    let acquire = |id: &str| AcquireRequest {
        resource: "r".to_owned(),
        consumer: "me".to_owned(),
        strategy: "jobs".to_owned(),
        id: id.to_owned(),
        ..AcquireRequest::default()
    };
    assert_eq!(leases.acquire(acquire("a")).await.unwrap_err().code(), Code::NotFound);
    service.asks("x").await;
    for round in 0..2 {
        service.write(&with_more(store));
        eventually(SOON, "the file is read", || service.loads("ok") == 2 + 2 * round);
        let log = |consumer: &str| weir_proto::v1::ShouldAllowRequest {
            strategy: "log".to_owned(),
            ..ask("y/1", consumer)
        };
        let consumer = format!("me{round}");
        let mut client = service.server.client().await;
        for (allowed, message) in [(true, ""), (true, ""), (false, "Wait")] {
            let answer = client.should_allow(log(&consumer)).await.unwrap().into_inner();
            assert_eq!((answer.allowed, answer.message.starts_with(message)), (allowed, true), "{answer:?}");
        }
        let live = weir_proto::v1::ShouldAllowRequest { strategy: "live".to_owned(), ..ask("z", &consumer) };
        client.should_allow(live).await.unwrap();
        eventually(SOON, "the shadow is counted", || {
            service
                .server
                .get("/metrics")
                .1
                .contains("weir_shadow_decisions_total{strategy=\"live\",shadow=\"log\"")
        });
        assert!(leases.acquire(acquire("held")).await.unwrap().into_inner().allowed);
        let items = vec![NewItem { payload: b"work".to_vec(), ..NewItem::default() }];
        let put = EnqueueRequest { queue: "work".to_owned(), items };
        assert!(queues.enqueue(put.clone()).await.unwrap().into_inner().accepted);
        service.write(&format!("{store}{}", limited_to(3)));
        eventually(SOON, "the file is read again", || service.loads("ok") == 3 + 2 * round);
        assert_eq!(client.should_allow(log("me")).await.unwrap_err().code(), Code::NotFound);
        // Nothing new comes in; what is out can be settled.
        assert_eq!(leases.acquire(acquire("new")).await.unwrap_err().code(), Code::NotFound);
        let held = ReleaseRequest {
            resource: "r".to_owned(),
            consumer: "me".to_owned(),
            strategy: "jobs".to_owned(),
            id: "held".to_owned(),
            ..ReleaseRequest::default()
        };
        assert!(leases.release(held).await.unwrap().into_inner().held);
        assert_eq!(queues.enqueue(put).await.unwrap_err().code(), Code::NotFound);
        let take =
            TakeRequest { queue: "work".to_owned(), consumer: "me".to_owned(), ..TakeRequest::default() };
        assert_eq!(queues.take(take).await.unwrap().into_inner().items.len(), 1);
    }
    assert_eq!(service.asks("x").await.remaining, Some(1), "what is unchanged keeps what is used");
}

#[tokio::test]
async fn on_memory() {
    check("", Configured::on).await;
}

#[tokio::test]
async fn on_redis() {
    let redis = RedisServer::start();
    let store = format!("store: {{ redis: {{ nodes: ['{}'] }} }}\n", redis.url());
    check(&store, |folder| {
        let config = Config::load(folder.path().join("weir.yaml"), &weir::features::overrides()).unwrap();
        let server = Server::start_by_the_system(config);
        eventually(SOON, "the service is ready", || server.get("/readyz").0 == 200);
        Configured { folder, server }
    })
    .await;
}
