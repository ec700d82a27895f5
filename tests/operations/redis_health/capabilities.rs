//! A missing right that only one feature needs takes the service of this feature away, and nothing else.

use weir_testing::rights;

use crate::failure::access::{self, counts, every_engine, leases};
use crate::failure::{config, shared};
use crate::support::command::{Serve, text, weir};
use crate::support::{RedisServer, SOON, eventually, scratch, watched};

const PASSWORD: &str = "hunter2";

const LIMITS: &str = "strategies:\n  login: { limits: [{ name: l, per: [consumer], fixed_window: { limit: 50, window: 1h } }] }\n";

/// A file of a node that logs in as `weir`, and needs its store.
struct Node {
    folder: tempfile::TempDir,
    redis: String,
}

impl Node {
    fn new(redis: &RedisServer) -> Self {
        let folder = scratch::dir("capabilities-");
        std::fs::write(folder.path().join("password"), PASSWORD).unwrap();
        Self { folder, redis: redis.url() }
    }

    fn path(&self) -> String {
        self.folder.path().join("weir.yaml").to_str().unwrap().to_owned()
    }

    fn write(&self, rest: &str) {
        let redis = &self.redis;
        let store = format!(
            "store: {{ redis: {{ nodes: [\"{redis}\"], username: weir, password_file: password }} }}\n"
        );
        std::fs::write(self.path(), store + rest).unwrap();
    }

    fn serve(&self) -> Serve {
        Serve::start(&["--config", &self.path()])
    }
}

fn is_serving(serve: &Serve, service: &str) -> Option<bool> {
    let out = weir(&["health", service, "--server", &serve.server]);
    match text(&out.stdout).trim() {
        "serving" => Some(true),
        "not serving" => Some(false),
        _ => None,
    }
}

fn note(serve: &Serve, parts: &[&str]) -> bool {
    let page = serve.get("/readyz");
    page.lines().any(|line| line.starts_with("note: ") && parts.iter().all(|part| line.contains(part)))
}

/// A live reload adds a queue, and the user has no right of queues: the node stays ready, decides, and says what is missing.
#[test]
fn a_queue_that_a_reload_adds_takes_no_decision_away() {
    let (redis, needs) = (RedisServer::start(), "server: { ready_needs_store: true }\n".to_owned() + LIMITS);
    let all = [rights::of_decisions(), rights::of_comparison(), vec!["+info"]].concat();
    rights::add_user(&redis, "weir", PASSWORD, &all);
    let node = Node::new(&redis);
    node.write(&format!("usage: {{ shared: false }}\n{needs}"));
    let mut serve = node.serve();
    eventually(SOON, "ready", || serve.get("/readyz").ends_with("\r\n\r\nready\n"));
    assert_eq!(is_serving(&serve, "weir.v1.QueueService"), Some(true));

    node.write(&format!("usage: {{ shared: false }}\n{needs}queues: {{ work: {{ capacity: 10 }} }}\n"));
    serve.process.signal("HUP");
    let missing = ["cannot serve queues", "ACL SETUSER weir ", "+xadd", "+xreadgroup"];
    eventually(SOON, "a note", || note(&serve, &missing));
    // As many probes as once took the node away.
    let seconds = || redis.query::<Vec<u64>>(&["TIME"])[0];
    let noted = seconds();
    eventually(SOON, "six seconds", || seconds() > noted + 6);
    let page = serve.get("/readyz");
    assert!(page.starts_with("HTTP/1.0 200") && page.contains("\r\n\r\nready\n"), "{page}");
    let up = format!("weir_store_node_up{{node=\"{}\"}} 1", redis.addr());
    assert!(serve.get("/metrics").contains(&up));
    assert_eq!(is_serving(&serve, "weir.v1.RateLimitService"), Some(true));
    assert_eq!(is_serving(&serve, "weir.v1.QueueService"), Some(false));
    assert_eq!(is_serving(&serve, ""), Some(true));
    let allowed = serve.allow(&["x", "bob", "--strategy", "login"]);
    assert!(allowed.status.success(), "{}", text(&allowed.stderr));

    rights::grant(&redis, "weir", &rights::of_queues());
    eventually(SOON, "no note", || serve.get("/readyz").ends_with("\r\n\r\nready\n"));
    assert_eq!(is_serving(&serve, "weir.v1.QueueService"), Some(true));
}

const EVERYTHING: &str = "
server: { control: true, audit_file: audit.jsonl }
usage: { shared: true }
queues:
  work: { capacity: 10, max_deliveries: 2, visibility: 1s }
  fresh: { capacity: 2, when_full: drop_oldest, max_age: 1h }
  clicks: { capacity: 10, kind: list }
strategies:
  exports: { concurrency: { limit: 2, per: [consumer] } }
  counted:
    limits: [{ name: l, per: [consumer], fixed_window: { limit: 1000, window: 1h } }]
    approximate: { max_over: 20, nodes: 2 }
  bucket: { limits: [{ name: l, per: [consumer], token_bucket: { burst: 5, rate: 1/s } }] }
  log: { limits: [{ name: l, per: [consumer], sliding_log: { limit: 5, window: 1s } }] }
  ring: { limits: [{ name: l, per: [consumer], bucketed_window: { limit: 5, window: 1h, buckets: 3600 } }] }
";

/// Without any right, all that are missing are on one page, and so they are when one was granted.
#[test]
fn all_missing_rights_of_all_capabilities_are_named_in_one_round() {
    let redis = RedisServer::start();
    rights::add_user(&redis, "weir", PASSWORD, &["+eval", "+info"]);
    let node = Node::new(&redis);
    node.write(EVERYTHING);
    let serve = node.serve();
    let of_features = [rights::of_leases(), rights::of_queues(), rights::of_usage(), rights::of_control()];
    let mut all = [rights::of_decisions(), of_features.concat(), rights::of_counters()].concat();
    all.extend(["+xinfo|groups", "+hmget"]);
    all.retain(|right| *right != "+eval");
    let unnamed = || {
        let page = serve.get("/readyz");
        let named: Vec<&str> = page.split([' ', '\n']).collect();
        all.iter().copied().filter(|right| !named.contains(right)).collect::<Vec<_>>()
    };
    // The page has none of them, or all.
    let mut pages = Vec::new();
    eventually(SOON, "a page that names them", || {
        pages.push(unnamed());
        pages.last().is_some_and(|unnamed| unnamed.len() < all.len())
    });
    assert_eq!(pages.pop(), Some(Vec::new()));
    rights::grant(&redis, "weir", &["+xadd"]);
    eventually(SOON, "the right that was granted is gone", || unnamed().contains(&"+xadd"));
    assert_eq!(unnamed(), ["+xadd"; 2]);
}

/// A user with exactly the rights that `weir check --redis-acl` prints can do everything.
#[cfg(feature = "queues")]
#[tokio::test]
async fn the_printed_line_is_enough_for_everything() {
    let redis = RedisServer::start();
    let node = Node::new(&redis);
    node.write(EVERYTHING);
    let out = weir(&["check", "--redis-acl", &node.path()]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let printed = text(&out.stdout);
    let line: Vec<&str> = printed.trim_end().split(' ').collect();
    assert!(printed.ends_with('\n') && printed.lines().count() == 1, "{printed}");
    assert_eq!(line[..3], ["ACL", "SETUSER", "weir"]);
    redis.cli(&line);
    redis.cli(&["ACL", "SETUSER", "weir", &format!(">{PASSWORD}")]);

    let serve = node.serve();
    eventually(SOON, "ready", || serve.get("/readyz").ends_with("\r\n\r\nready\n"));
    let run = |args: &[&str]| {
        let out = weir(&[args, &["--server", &serve.server]].concat());
        assert!(out.status.success(), "{args:?}: {} {}", text(&out.stdout), text(&out.stderr));
    };
    run(&["allow", "x", "bob", "--strategy", "counted"]);
    run(&["control", "put-strategy", "bucket", "--limit", "l=9/1s", "--reason", "test"]);
    run(&["control", "list"]);
    run(&["queue", "put", "fresh", "a"]);
    run(&["queue", "put", "fresh", "b"]);
    run(&["queue", "put", "fresh", "c"]);
    run(&["queue", "stats", "work"]);
    run(&["nodes"]);

    let login = access::login(PASSWORD);
    let config =
        weir_config::RedisConfig { login, ..config(vec![redis.url()], weir_config::Topology::Single) };
    let store = watched(&shared(&config)).await;
    every_engine(&store).await;
    let mut refused = leases::everything(&store, &redis, "line").await;
    refused.extend(access::queues::everything(&store, &redis, "line").await);
    refused.extend(counts::everything(&store, "line").await);
    assert!(refused.is_empty(), "{refused:?}");
    // Another node, so that limits are compared and usage is read.
    let other = node.serve();
    eventually(SOON, "ready", || other.get("/readyz").ends_with("\r\n\r\nready\n"));
    assert!(serve.get("/readyz").ends_with("\r\n\r\nready\n"));
    let denied: Vec<redis::Value> = redis.query(&["ACL", "LOG"]);
    assert!(denied.is_empty(), "{denied:?}");
}

/// Only what the file needs is printed, and a file with a mistake prints nothing.
#[test]
fn the_line_has_what_the_file_needs() {
    let printed = |text_of_file: &str| {
        let folder = scratch::dir("acl-");
        let path = scratch::file(folder.path(), "weir.yaml", text_of_file);
        let out = weir(&["check", "--redis-acl", path.to_str().unwrap()]);
        (out.status.code(), text(&out.stdout))
    };
    let redis = |more: &str| {
        format!(
            "store: {{ redis: {{ nodes: [\"redis://localhost\"]{more} }}\nusage: {{ shared: false }}\n{LIMITS}"
        )
    };
    let (_, line) = printed(&redis(", username: shop, password: hunter2 }, namespace: shop"));
    assert!(line.starts_with("ACL SETUSER shop on ~shop:* "), "{line}");
    for right in
        ["+lrange", "+getrange", "+xadd", "+zscore", "+hscan", "+cluster|slots", "+select", "+pexpire "]
    {
        assert!(!line.contains(right), "{right}: {line}");
    }
    let (_, line) = printed(&redis(", topology: cluster }").replacen(']', ", \"redis://other\"]", 1));
    assert!(line.contains(" +cluster|slots +cluster|countkeysinslot +asking"), "{line}");
    assert_eq!(printed(LIMITS), (Some(1), String::new()));
    assert_eq!(printed("strategies: 5"), (Some(1), String::new()));
}
