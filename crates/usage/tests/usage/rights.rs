//! Rights that a user on Redis needs for usage: docs/usage.md says the same.

use weir_config::{Config, Login, RedisConfig, Secret, StoreConfig, Topology};
use weir_proto::v1::{GetUsageRequest, TopConsumersRequest};
use weir_usage::{UsageConfig, with_usage};

use super::{get, usage_of};
use crate::support::server::{Server, ask_under, config};
use crate::support::{RedisServer, SOON, eventually_async, redis_config, rights};

/// Further rights of a node, unless usage is off; docs/usage.md says the same.
const USAGE_RIGHTS: &str = "+hset +hgetall +expire +zadd +zrange +zremrangebyscore +zremrangebyrank";

fn node(name: &str, redis: &RedisServer) -> Server {
    let login = Login { username: Some("weir".to_owned()), password: Secret::new("hunter2") };
    let store = RedisConfig { login: Some(login), ..redis_config(vec![redis.url()], Topology::Single) };
    let usage = UsageConfig { node: Some(name.to_owned()), sample: 1, ..UsageConfig::default() };
    let config = Config { store: StoreConfig::Redis(store), ..config() };
    Server::start_by_the_system(with_usage(config, usage))
}

#[test]
fn the_document_says_the_same() {
    assert!(include_str!("../../../../docs/usage.md").contains(&format!("`{USAGE_RIGHTS}`")));
    assert!(!rights::of_decisions().contains(&"+hgetall"), "decisions do without");
}

#[tokio::test]
async fn usage_needs_its_own_rights_and_no_others() {
    let redis = RedisServer::start();
    let more: Vec<&str> = USAGE_RIGHTS.split(' ').collect();
    let all = [&rights::of_decisions()[..], &more].concat();
    rights::add_user(&redis, "weir", "hunter2", &all);
    let (one, two) = (node("one", &redis), node("two", &redis));
    let mut client = one.client().await;
    client.should_allow(ask_under("open", "x", "bob")).await.unwrap();
    let mut usage = usage_of(&two).await;
    let sees_it = async || {
        let answer = get(&mut usage, GetUsageRequest::default()).await;
        answer.series.len() == 1 && answer.incomplete.is_empty()
    };
    eventually_async(SOON, "the call of the other node", sees_it).await;
    let consumers = usage.top_consumers(TopConsumersRequest::default()).await.unwrap().into_inner();
    assert_eq!(consumers.incomplete, "");
    let denied = redis.query::<Vec<redis::Value>>(&["ACL", "LOG"]);
    let of_usage = denied.iter().filter(|entry| format!("{entry:?}").contains("usage"));
    assert_eq!(of_usage.count(), 0, "{denied:?}");
    for right in more {
        let withdrawn = right.replace('+', "-");
        redis.cli(&["ACL", "SETUSER", "weir", &withdrawn]);
        redis.cli(&["ACL", "LOG", "RESET"]);
        let command = right.trim_start_matches('+');
        let mut turn = 0;
        let is_missed = async || {
            turn += 1;
            // Decisions go on without it.
            let question = ask_under("open", right, &turn.to_string());
            assert!(client.should_allow(question).await.unwrap().into_inner().allowed);
            get(&mut usage, GetUsageRequest::default()).await;
            let denied = redis.query::<Vec<redis::Value>>(&["ACL", "LOG"]);
            format!("{denied:?}").contains(command)
        };
        eventually_async(SOON, &format!("something needs {right}"), is_missed).await;
        redis.cli(&["ACL", "SETUSER", "weir", right]);
    }
}
