//! Redis with users: the narrowest rights that work, and what a wrong password does.

pub(crate) mod counts;
#[cfg(feature = "leases")]
pub(crate) mod leases;
#[cfg(feature = "queues")]
pub(crate) mod queues;

use weir_config::{Config, Login, RedisConfig, Secret, StoreConfig, Topology};
use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::redis::RedisStore;
use weir_store::{Decision, StoreError, Verdicts};
use weir_testing::DecideOne as _;
use weir_units::Micros;

use super::{allow, charge, config, shared, store_unwatched};
use crate::support::server::{Server, ask_under};
use crate::support::{Cluster, RedisServer, SOON, eventually, eventually_async, watched};

const PASSWORD: &str = "hunter2";

/// Rights of a user besides its keys; docs/redis.md says the same.
pub(crate) const RIGHTS: &str = "+evalsha +eval +time +get +set +mget +setrange +getrange +del +exists +rpush +rpop +llen +lrange +lindex +lset +ltrim +pexpireat";

/// Rights besides, if a strategy has leases.
pub(crate) const LEASE_RIGHTS: &str =
    "+hset +hget +hmget +hdel +zadd +zrem +zcard +zscore +zrange +zrangebyscore";

/// Rights besides, if there are queues.
const QUEUE_RIGHTS: &str = "+hget +hset +hmget +hdel +zadd +zrem +zcard +zrange +zrangebyscore +xadd +xlen +xrange +xrevrange +xtrim +xdel +xack +xclaim +xreadgroup +xgroup|create +lpop";

/// Rights besides, if nodes count a strategy on their own.
const COUNT_RIGHTS: &str = "+hset +hget +hmget +pexpire";

/// Of each feature: what it tries, apart from rights of decisions, is in a list of the document, in any order.
#[test]
fn the_document_lists_the_rights_of_features() {
    // Each feature has its list in the document of Redis, or in its own.
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
    let own = |name: &str| std::fs::read_to_string(format!("{root}/{name}.md")).unwrap_or_default();
    let features = weir::features::FEATURES.iter().map(|feature| feature.name());
    let documents: Vec<String> = features.chain(["redis"]).map(own).collect();
    let listed: Vec<std::collections::BTreeSet<&str>> =
        documents.iter().flat_map(|page| page.split('`')).map(|text| text.split(' ').collect()).collect();
    for (spec, _) in weir::features::FEATURES.iter().flat_map(|feature| feature.scripts()) {
        let rights = spec.rights();
        let own = |list: &std::collections::BTreeSet<&str>| {
            let all = rights
                .split(' ')
                .all(|right| list.contains(right) || RIGHTS.split(' ').any(|it| it == right));
            all && list.iter().all(|right| rights.split(' ').any(|own| own == *right))
        };
        assert!(listed.iter().any(own), "{spec:?}: {rights}");
    }
}

#[test]
fn the_readme_says_the_same() {
    assert!(include_str!("../../../docs/redis.md").contains(&format!("`{LEASE_RIGHTS}`")));
    assert!(include_str!("../../../docs/redis.md").contains(&format!("`{QUEUE_RIGHTS}`")));
    assert!(include_str!("../../../docs/redis.md").contains(&format!("`{COUNT_RIGHTS}`")));
    assert!(include_str!("../../../docs/redis.md").contains(&format!("`~weir:* {RIGHTS}`")));
}

pub(crate) fn login(password: &str) -> Option<Login> {
    Some(Login { username: Some("weir".to_owned()), password: Secret::new(password) })
}

pub(crate) fn add_user(redis: &RedisServer, password: &str, more: &[&str]) {
    add_user_of(redis, "weir", "weir", password, more);
}

/// A user who may touch the keys of one namespace only.
pub(crate) fn add_user_of(redis: &RedisServer, namespace: &str, user: &str, password: &str, more: &[&str]) {
    let (password, keys) = (format!(">{password}"), format!("~{namespace}:*"));
    let mut command = vec!["ACL", "SETUSER", user, "reset", "on", &password, &keys];
    command.extend(RIGHTS.split(' '));
    command.extend(more);
    redis.cli(&command);
}

fn config_as(redis: &RedisServer, password: &str) -> RedisConfig {
    RedisConfig { login: login(password), ..config(vec![redis.url()], Topology::Single) }
}

/// Every engine and every operation, as a user with no other rights than those that docs/redis.md lists.
#[tokio::test]
async fn the_narrowest_rights_are_enough() {
    let redis = RedisServer::start();
    add_user(&redis, PASSWORD, &[]);
    let store = watched(&shared(&config_as(&redis, PASSWORD))).await;
    every_engine(&store).await;
    redis.flush_scripts();
    every_engine(&store).await;
    let denied: Vec<redis::Value> = redis.query(&["ACL", "LOG"]);
    assert!(denied.is_empty(), "{denied:?}");
}

/// Everything that can happen to a lease, as a user with exactly the rights that docs/redis.md lists. Without any
/// of them something is refused.
#[cfg(feature = "leases")]
#[tokio::test]
async fn leases_need_their_own_rights_and_no_others() {
    needs_exactly(LEASE_RIGHTS, async |store, redis, name| leases::everything(store, redis, name).await)
        .await;
}

/// The same of queues.
#[cfg(feature = "queues")]
#[tokio::test]
async fn queues_need_their_own_rights_and_no_others() {
    needs_exactly(QUEUE_RIGHTS, async |store, redis, name| queues::everything(store, redis, name).await)
        .await;
}

/// The same of counters that nodes count on their own.
#[tokio::test]
async fn counters_of_nodes_need_their_own_rights_and_no_others() {
    needs_exactly(COUNT_RIGHTS, async |store, _, name| counts::everything(store, name).await).await;
}

/// With these rights nothing is refused, and without any of them something is.
async fn needs_exactly(
    rights: &str,
    everything: impl AsyncFn(&RedisStore, &RedisServer, &str) -> Vec<StoreError>,
) {
    let redis = RedisServer::start();
    let more: Vec<&str> = rights.split(' ').collect();
    add_user(&redis, PASSWORD, &more);
    let store = watched(&shared(&config_as(&redis, PASSWORD))).await;
    let denied = || redis.query::<Vec<redis::Value>>(&["ACL", "LOG"]);
    let failures = everything(&store, &redis, "all").await;
    assert!(failures.is_empty() && denied().is_empty(), "{failures:?} {:?}", denied());
    for right in more {
        let withdrawn = right.replace('+', "-");
        weir_testing::rights::withdraw(&redis, "weir", right);
        redis.cli(&["ACL", "LOG", "RESET"]);
        let failures = everything(&store, &redis, &withdrawn).await;
        assert!(!denied().is_empty(), "nothing needs {right}");
        let refused = |error: &StoreError| matches!(error, StoreError::Refused(_));
        assert!(!failures.is_empty() && failures.iter().all(refused), "without {right}: {failures:?}");
        redis.cli(&["ACL", "SETUSER", "weir", right]);
    }
}

#[tokio::test]
async fn a_cluster_needs_one_more() {
    let cluster = Cluster::start(3, 0);
    for node in cluster.nodes() {
        add_user(node, PASSWORD, &["+cluster|slots"]);
    }
    let config = RedisConfig { login: login(PASSWORD), ..config(cluster.urls(), Topology::Cluster) };
    let store = watched(&shared(&config)).await;
    for resource in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(charge(&store, resource, 1).await, Ok(99_999));
    }
}

pub(crate) async fn every_engine(store: &RedisStore) {
    let hour = Micros::from_secs(3600);
    let algorithms = [
        Algorithm::bucket(9, Rate { count: 1, period: hour }).unwrap(),
        Algorithm::fixed_window(9, hour, false, true).unwrap(),
        Algorithm::interval_refill(9, 1, hour, false).unwrap(),
        Algorithm::sliding_log(9, hour).unwrap(),
        Algorithm::sliding_window(9, hour).unwrap(),
        Algorithm::bucketed_window(9, hour, 6, true).unwrap(),
        Algorithm::bucketed_window(9, hour, 3600, true).unwrap(),
    ];
    for algorithm in algorithms {
        let limits = vec![Limit { name: "l".into(), scope: Scope::new(&[Field::Resource]), algorithm }];
        let strategy =
            std::sync::Arc::new(Strategy::new("acl", limits, false, FailurePolicy::Error).unwrap());
        let subject = Subject { resource: "r", consumer: "", ..Subject::default() };
        for op in [
            Op::Charge,
            Op::Peek,
            Op::Charge,
            Op::Refund,
            Op::Force,
            Op::Count { parts: 3 },
            Op::Reset,
            Op::Charge,
        ] {
            let mut out = Verdicts::default();
            let decision = Decision::new(&strategy, subject, Op::Peek, &[]);
            let decided = store.decide_one(&decision, op, &[2], &mut out).await;
            let unsupported = matches!(decided, Err(StoreError::Unsupported(_)));
            assert!(decided.is_ok() || unsupported, "{algorithm:?} {op:?}: {decided:?}");
        }
    }
}

/// The failure policies answer, nothing crashes, and no message shows the secret. Once the server accepts the
/// password, Weir uses it again without a restart.
#[tokio::test]
async fn a_wrong_password_is_reported_and_recovers() {
    let redis = RedisServer::start();
    add_user(&redis, "another", &[]);
    let server = Server::start_by_the_system(Config {
        store: StoreConfig::Redis(config_as(&redis, PASSWORD)),
        ..crate::support::server::config()
    });
    eventually(SOON, "the reason", || {
        let (status, reason) = server.get("/readyz");
        assert!(status == 503 && !reason.contains(PASSWORD), "{reason}");
        reason.contains("login refused: wrong user name or password, or the user is disabled (WRONGPASS)")
    });
    let mut client = server.client().await;
    let answer = client.should_allow(ask_under("closed", "r", "c")).await.unwrap().into_inner();
    assert!(!answer.allowed && answer.degraded);
    let error = client.should_allow(ask_under("burst", "r", "c")).await.unwrap_err();
    assert!(!error.message().contains(PASSWORD), "{error}");
    add_user(&redis, PASSWORD, &[]);
    eventually(SOON, "ready", || server.get("/readyz").0 == 200);
    let decided = async || {
        let answer = client.should_allow(ask_under("closed", "r", "c")).await;
        answer.is_ok_and(|answer| !answer.into_inner().degraded)
    };
    eventually_async(SOON, "decisions", decided).await;
}

/// The password in the file changes, and Redis closes what was opened with the old one: new connections are opened
/// with the new one, without a restart of ours. While the file cannot be read, the reason names it.
#[tokio::test]
async fn a_rotated_password_needs_no_restart() {
    let redis = RedisServer::start();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "first\n").unwrap();
    add_user(&redis, "first", &[]);
    let login = Some(Login { username: Some("weir".to_owned()), password: Secret::in_file(file.path()) });
    let config = RedisConfig { login, ..config(vec![redis.url()], Topology::Single) };
    let store = watched(&shared(&config)).await;
    assert_eq!(charge(&store, "r", 1).await, Ok(99_999));
    let rotated = |password: &str| {
        add_user(&redis, password, &[]);
        redis.cli(&["CLIENT", "KILL", "USER", "weir"]);
    };
    rotated("second");
    eventually_async(SOON, "the old password is refused", async || {
        matches!(charge(&store, "r", 0).await, Err(StoreError::Unavailable(why)) if why.contains("WRONGPASS"))
    })
    .await;
    std::fs::write(file.path(), "second\n").unwrap();
    eventually_async(SOON, "the new one", async || charge(&store, "r", 0).await == Ok(99_999)).await;
    std::fs::remove_file(file.path()).unwrap();
    rotated("third");
    let name = file.path().display().to_string();
    eventually_async(SOON, "the file is named", async || {
        let answer = charge(&store, "r", 0).await;
        matches!(answer, Err(StoreError::Unavailable(why)) if why.contains(&name) && !why.contains("second"))
    })
    .await;
    std::fs::write(file.path(), "third").unwrap();
    eventually_async(SOON, "the third one", async || charge(&store, "r", 0).await == Ok(99_999)).await;
}

#[tokio::test]
async fn no_password_where_one_is_wanted() {
    let redis = RedisServer::start();
    redis.cli(&["CONFIG", "SET", "requirepass", PASSWORD]);
    let store = store_unwatched(&config(vec![redis.url()], Topology::Single));
    let Err(StoreError::Unavailable(why)) = allow(&store, "r").await else { panic!("it is refused") };
    assert!(why.contains("it wants a password (NOAUTH), and none is configured"), "{why}");
    let login = Some(Login { username: None, password: Secret::new(PASSWORD) });
    let config = RedisConfig { login, ..config(vec![redis.url()], Topology::Single) };
    let store = watched(&shared(&config)).await;
    assert_eq!(allow(&store, "r").await, Ok(true));
}
