//! The log on Redis: one warning when it begins, one line when it is over, each with the reason.

use serde_json::Value;

use crate::failure::access::add_user;
use crate::support::command::Serve;
use crate::support::sentinels::Sentinels;
use crate::support::{Cluster, RedisServer, SOON, eventually, scratch};

/// The lines of a log at this level whose message has `part`.
pub(super) fn lines(log: &str, level: &str, part: &str) -> Vec<Value> {
    let all = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let fits = |line: &Value| line["level"] == level && line["message"].as_str().unwrap().contains(part);
    all.filter(fits).collect()
}

pub(super) fn waits(serve: &Serve, part: &str) {
    eventually(SOON, part, || serve.get("/readyz").contains(part));
}

/// The example with this `store.redis`.
pub(super) fn serve(redis: &str) -> (tempfile::TempDir, Serve) {
    let folder = scratch::dir("logged-");
    let text = format!(
        "{}\n",
        weir_config::EXAMPLE.replace("  memory: { budget: 512MiB, when_full: evict }", redis)
    );
    let file = scratch::file(folder.path(), "weir.yaml", text);
    let serve = Serve::start(&["--config", file.to_str().unwrap()]);
    (folder, serve)
}

#[test]
fn a_node_that_cannot_decide_is_one_warning_and_one_end() {
    let redis = RedisServer::start();
    let serve = Serve::start(&["--store", &redis.url()]);
    waits(&serve, "ready\n");
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    waits(&serve, "degraded: ");
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    waits(&serve, "\r\n\r\nready\n");
    let (_, log) = serve.stop("TERM");
    let began = lines(&log, "WARN", "a Redis node cannot decide");
    let [began] = began.as_slice() else { panic!("one warning: {log}") };
    assert_eq!(began["node"], redis.addr());
    assert!(began["reason"].as_str().unwrap().starts_with("OOM "), "{began}");
    assert!(began["what_to_do"].as_str().unwrap().contains("maxmemory"), "{began}");
    assert_eq!(lines(&log, "INFO", "Redis node recovered").len(), 1, "{log}");
}

/// Another secret and a policy that evicts are a warning each; that `INFO` is refused is a line.
#[test]
fn what_makes_answers_worse_is_one_warning_each() {
    let redis = RedisServer::start();
    redis.cli(&["SET", "weir:{key_secret}:fingerprint", "0123456789abcdef", "PX", "60000"]);
    redis.cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let secret = [("WEIR_KEY_SECRET", "hunter2")];
    let serve = Serve::start_with(&["--store", &redis.url()], &secret);
    waits(&serve, "note: another node has another key_secret");
    waits(&serve, "may evict keys");
    // Probes are every 2 s, each of two engines, and looks for evictions every 5 s.
    let before = redis.script_calls();
    eventually(SOON, "further looks", || redis.script_calls() >= before + 12);
    let (_, log) = serve.stop("TERM");
    assert!(!log.contains("hunter2"), "{log}");
    let secrets = lines(&log, "WARN", "another node has another key_secret");
    let [line] = secrets.as_slice() else { panic!("one warning: {log}") };
    assert_eq!(line["other"], "0123456789abcdef");
    let policies = lines(&log, "WARN", "maxmemory-policy of Redis allows it to evict");
    let [line] = policies.as_slice() else { panic!("one warning: {log}") };
    assert_eq!((&line["node"], &line["policy"]), (&redis.addr().into(), &"allkeys-lru".into()));
    assert_eq!(lines(&log, "INFO", "run INFO").len(), 0, "{log}");

    add_user(&redis, "hunter2", &[]);
    let url = format!("redis://weir:hunter2@{}", redis.addr());
    let serve = Serve::start_with(&["--store", &url], &secret);
    waits(&serve, "\r\n\r\nready\n");
    eventually(SOON, "it has asked", || !redis.query::<Vec<redis::Value>>(&["ACL", "LOG"]).is_empty());
    let (_, log) = serve.stop("TERM");
    assert_eq!(lines(&log, "INFO", "Redis user may not run INFO").len(), 1, "{log}");
}

/// The line once said only that a connection was given up.
#[test]
fn a_connection_that_is_given_up_has_a_reason() {
    let redis = RedisServer::start();
    let serve = Serve::start(&["--store", &redis.url()]);
    waits(&serve, "\r\n\r\nready\n");
    serve.allow(&["api/orders", "bob"]);
    redis.freeze();
    eventually(SOON, "the node is not asked any more", || {
        serve.allow(&["api/orders", "bob"]);
        serve
            .get("/metrics")
            .lines()
            .any(|line| line.starts_with("weir_store_breaker_open{") && line.ends_with(" 1"))
    });
    redis.thaw();
    waits(&serve, "\r\n\r\nready\n");
    let (_, log) = serve.stop("TERM");
    let given_up = lines(&log, "INFO", "closed a connection to Redis because its calls failed; reconnecting");
    assert!(!given_up.is_empty(), "{log}");
    for line in given_up {
        assert_eq!(line["node"], redis.addr());
        assert!(line["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{line}");
    }
}

#[test]
fn a_wrong_master_name_is_logged() {
    let sentinels = Sentinels::start();
    let nodes = sentinels.urls().join("\", \"");
    let redis = format!("  redis: {{ nodes: [\"{nodes}\"], topology: sentinel, master_name: zo }}");
    let (_folder, serve) = serve(&redis);
    waits(&serve, "master_name");
    wait_and_find(serve, "knows no master \"zo\"", "master_name");
}

#[test]
fn addresses_of_servers_in_place_of_sentinels_are_logged() {
    let redis = RedisServer::start();
    let config = format!("  redis: {{ nodes: [\"{}\"], topology: sentinel, master_name: zoo }}", redis.url());
    let (_folder, serve) = serve(&config);
    waits(&serve, "sentinels");
    wait_and_find(serve, "unknown command", "addresses of the sentinels");
}

#[test]
fn a_single_server_in_place_of_a_cluster_is_logged() {
    let redis = RedisServer::start();
    let (_folder, serve) = serve(&format!("  redis: {{ nodes: [\"{}\"], topology: cluster }}", redis.url()));
    waits(&serve, "topology: single");
    wait_and_find(serve, "cluster support disabled", "topology: single");
}

/// However many looks fail, that is one warning, at the third of them.
fn wait_and_find(serve: Serve, reason: &str, what_to_do: &str) {
    let lasts = |page: String| {
        let line = page
            .lines()
            .find(|line| line.contains("degraded: cannot discover the nodes of Redis"))?
            .to_owned();
        line.split_once("(for ")?.1.split(' ').next()?.parse::<u64>().ok()
    };
    eventually(SOON, "many looks have failed", || lasts(serve.get("/readyz")) >= Some(3));
    let (_, log) = serve.stop("TERM");
    let warnings = lines(&log, "WARN", "cannot discover the nodes of Redis; will retry");
    let [warning] = warnings.as_slice() else { panic!("one warning: {log}") };
    assert!(warning["reason"].as_str().unwrap().contains(reason), "{warning}");
    assert!(warning["what_to_do"].as_str().unwrap().contains(what_to_do), "{warning}");
}

#[test]
fn a_node_of_a_cluster_in_place_of_a_single_server_is_logged() {
    let cluster = Cluster::start(3, 0);
    for node in cluster.nodes() {
        let serve = Serve::start(&["--store", &node.url()]);
        waits(&serve, "topology: cluster");
        waits(&serve, "degraded: Redis node");
        drop(serve);
    }
}
