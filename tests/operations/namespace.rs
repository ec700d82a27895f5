//! Deployments with different namespaces share a Redis: neither reads, counts or reports what the other has there.

use weir_config::{Config, ConfigOverrides, RedisConfig, ServerConfig};
use weir_core::key::Namespace;
use weir_proto::v1::RefundRequest;

use crate::failure::access::add_user_of;
use crate::support::server::{Server, ask, config};
use crate::support::{RedisServer, SOON, eventually};

/// A service whose keys begin with `namespace`, as a user who has no other keys.
fn start(redis: &RedisServer, namespace: &str, secret: &str) -> Server {
    let more = [weir_testing::rights::of_usage(), vec!["+info", "+hmget"]].concat();
    add_user_of(redis, namespace, namespace, "hunter2", &more);
    let (limit, url) =
        ("{ name: each, per: [resource, consumer], token_bucket: { rate: 5/1h } }", redis.url());
    let text = format!(
        "store: {{ namespace: {namespace}, key_secret: {secret}, redis: {{ nodes: [\"{url}\"], username: {namespace}, \
         password: hunter2, deadline: 30s }} }}\nstrategies: {{ burst: {{ limits: [{limit}] }} }}\n\
         resources: [{{ match: burst/*, strategy: burst }}]"
    );
    let read = Config::parse(&text, "weir.yaml", &ConfigOverrides::default()).unwrap();
    let server = ServerConfig { ready_needs_store: false, ..config().server };
    Server::start_by_the_system(Config { server, ..read })
}

#[tokio::test]
async fn deployments_share_a_redis() {
    let redis = RedisServer::start();
    let shop = start(&redis, "shop", "one");
    let zoo = start(&redis, "zoo-2", "two");
    for server in [&shop, &zoo] {
        eventually(SOON, "ready", || server.get("/readyz") == (200, "ready\n".to_owned()));
        let mut client = server.client().await;
        for remaining in (0..5).rev() {
            let answer = client.should_allow(ask("burst/x", "bob")).await.unwrap().into_inner();
            assert_eq!(
                (answer.allowed, answer.remaining),
                (true, Some(remaining)),
                "each has a limit of its own"
            );
        }
        assert!(!client.should_allow(ask("burst/x", "bob")).await.unwrap().into_inner().allowed);
        let refund = RefundRequest {
            resource: "burst/x".to_owned(),
            consumer: "bob".to_owned(),
            id: "first".to_owned(),
            ..RefundRequest::default()
        };
        assert!(client.refund(refund).await.unwrap().into_inner().applied, "ids are its own, too");
    }
    let has =
        |begins: &str, has: &str| redis.keys().iter().any(|key| key.starts_with(begins) && key.contains(has));
    for namespace in ["shop:{", "zoo-2:{"] {
        // Usage is written a second after the first decision, so the test waits for it.
        for part in
            ["}Bburst:each|", "}Fburst|first|", "}probe:bucket", "key_secret}:fingerprint", "{usage}:"]
        {
            eventually(SOON, part, || has(namespace, part));
        }
    }
    let others = |key: &String| !key.starts_with("shop:{") && !key.starts_with("zoo-2:{");
    assert_eq!(redis.keys().into_iter().filter(others).collect::<Vec<_>>(), Vec::<String>::new());
    for server in [&shop, &zoo] {
        assert_eq!(
            server.get("/readyz"),
            (200, "ready\n".to_owned()),
            "another secret is another's business"
        );
    }
    let denied: Vec<redis::Value> = redis.query(&["ACL", "LOG"]);
    assert!(denied.is_empty(), "{denied:?}");
}

/// The message about a refused key names the namespace.
#[test]
fn a_missing_right_names_the_namespace() {
    let redis = RedisServer::start();
    let server = start(&redis, "shop", "one");
    eventually(SOON, "ready", || server.get("/readyz").0 == 200);
    redis.cli(&["ACL", "SETUSER", "shop", "resetkeys", "~weir:*"]);
    eventually(SOON, "the right", || server.get("/readyz").1.contains("ACL SETUSER shop ~shop:*"));
    redis.cli(&["ACL", "SETUSER", "shop", "~shop:*"]);
    eventually(SOON, "recovery", || server.get("/readyz") == (200, "ready\n".to_owned()));
}

#[test]
fn the_default_leaves_keys_as_they_were() {
    assert_eq!(Namespace::default().as_str(), "weir");
    assert_eq!(Config::built_in().namespace, Namespace::DEFAULT);
    assert_eq!(RedisConfig::default().namespace, Namespace::DEFAULT);
}
