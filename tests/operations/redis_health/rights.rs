//! Each right of each list of docs/redis.md is taken away in turn, and `/readyz` names it. On one Redis, with a user and a
//! service for each list.

use weir_config::{Config, Login, RedisConfig, Secret};
use weir_testing::rights;

use super::{on, ready, sharing_usage, single};
use crate::support::server::Server;
use crate::support::{RedisServer, SOON, eventually};

const PASSWORD: &str = "hunter2";

const STRATEGIES: &str = "strategies:
  bucket: { limits: [{ name: each, per: [consumer], token_bucket: { burst: 5, rate: 1/s } }] }
  log: { limits: [{ name: each, per: [consumer], sliding_log: { limit: 5, window: 1s } }] }
  ring: { limits: [{ name: each, per: [consumer], bucketed_window: { limit: 5, window: 1h, buckets: 3600 } }] }
";
const LEASES: &str = "strategies: { exports: { concurrency: { limit: 2, per: [consumer] } } }";
const QUEUES: &str = "queues: { work: { kind: stream, capacity: 10 } }";

/// A service with this configuration, as a user of its own.
fn service(redis: &RedisServer, user: &str, text: &str, shares_usage: bool) -> Server {
    let parsed = Config::parse(text, "weir.yaml", &weir::features::overrides()).unwrap();
    let login = Login { username: Some(user.to_owned()), password: Secret::new(PASSWORD) };
    let config = on(RedisConfig { login: Some(login), ..single(redis) });
    let config = Config { rules: parsed.rules, sections: parsed.sections, ..config };
    Server::start_by_the_system(sharing_usage(shares_usage, config))
}

/// Each of `listed` is named while it is missing, in a line that begins so.
fn each_is_named(redis: &RedisServer, (user, text): (&str, &str), listed: &[&str], begin: &str) {
    let all = [&rights::of_decisions()[..], &rights::of_comparison(), listed].concat();
    rights::add_user(redis, user, PASSWORD, &[&all[..], &["+info"]].concat());
    let server = service(redis, user, text, user == "counter");
    ready(&server);
    for right in listed {
        rights::withdraw(redis, user, right);
        eventually(SOON, &format!("a line that begins with {begin} and names {right}"), || {
            let page = server.get("/readyz").1;
            let mut lines = page.lines().filter(|line| line.starts_with(begin));
            lines.any(|line| {
                line.contains(&format!("ACL SETUSER {user} ")) && line.split(' ').any(|word| word == *right)
            })
        });
        rights::grant(redis, user, &[right]);
    }
    ready(&server);
}

#[test]
fn every_right_that_is_missing_is_named() {
    let redis = RedisServer::start();
    let lists = [
        (("decider", STRATEGIES), rights::of_decisions(), "degraded: Redis node"),
        (("lender", LEASES), rights::of_leases(), "note: Redis node"),
        (("worker", QUEUES), rights::of_queues(), "note: Redis node"),
        (("counter", STRATEGIES), rights::of_usage(), "note: Redis node"),
    ];
    std::thread::scope(|scope| {
        for (who, listed, begin) in &lists {
            scope.spawn(|| each_is_named(&redis, *who, listed, begin));
        }
    });
}

/// Redis names no command of a script in version 6.2 and tells of one at a time; Weir names all that are missing.
#[test]
fn all_that_are_missing_are_named_at_once() {
    let redis = RedisServer::start();
    rights::add_user(&redis, "worker", PASSWORD, &rights::of_decisions());
    let server = service(&redis, "worker", QUEUES, false);
    let all = rights::of_queues();
    eventually(SOON, "all are named", || {
        let page = server.get("/readyz").1;
        all.iter().all(|right| page.split([' ', '\n']).any(|word| word == *right))
    });
}

/// Only queues that drop items, or let them age, ask how far they are read. Without the right, the probe found nothing, and the
/// first full queue was refused.
#[test]
fn queues_that_drop_items_need_one_right_more() {
    let redis = RedisServer::start();
    let all = [rights::of_decisions(), rights::of_queues(), rights::of_comparison(), vec!["+info"]].concat();
    rights::add_user(&redis, "worker", PASSWORD, &all);
    ready(&service(&redis, "worker", QUEUES, false));
    for queue in ["max_age: 1h", "when_full: drop_oldest"] {
        rights::withdraw(&redis, "worker", "+xinfo|groups");
        let server =
            service(&redis, "worker", &format!("queues: {{ work: {{ capacity: 10, {queue} }} }}"), false);
        eventually(SOON, "the right is named", || {
            server.get("/readyz").1.split([' ', '\n']).any(|word| word == "+xinfo|groups")
        });
        rights::grant(&redis, "worker", &["+xinfo|groups"]);
        ready(&server);
    }
}
