//! A node that has lost its data is one warning, and nothing else is.

use super::logged::{lines, serve, waits};
use crate::support::command::Serve;
use crate::support::sentinels::Sentinels;
use crate::support::{Cluster, RedisServer, SOON, eventually};

const LOST: &str = "lost its data, or evicted it; its limits start full";

fn markers(redis: &RedisServer) -> usize {
    redis.keys().iter().filter(|key| key.ends_with("}probe:marker")).count()
}

/// Waits for further looks at the marker, which are every 5 s. Each asks for three sections of `INFO`; the test asks once for each
/// question. A question may have no answer: sentinels close the connections of all clients of a new master.
fn further_looks(redis: &RedisServer) {
    let (mut before, mut own) = (None, 0);
    eventually(SOON, "two further looks", || {
        own += 1;
        let Ok(asked) = redis.try_command_stat("info", "calls") else { return false };
        // From the first answer on, all own questions count, whether they were answered or not.
        let (first, unseen) = *before.get_or_insert((asked, own));
        asked >= first + (own - unseen) + 6
    });
}

#[test]
fn a_flushed_server_and_one_that_was_started_again_are_a_warning_each() {
    let redis = RedisServer::start();
    let serve = Serve::start(&["--store", &redis.url()]);
    eventually(SOON, "a marker", || markers(&redis) == 1);
    further_looks(&redis);
    redis.flush_all();
    eventually(SOON, "it was seen", || markers(&redis) == 1);
    redis.kill();
    redis.restart();
    eventually(SOON, "it was seen", || markers(&redis) == 1);
    let (_, log) = serve.stop("TERM");
    let lost = lines(&log, "WARN", LOST);
    assert_eq!(lost.len(), 2, "{log}");
    assert!(lost.iter().all(|line| line["node"] == redis.addr()), "{log}");
}

#[test]
fn slots_that_move_lose_nothing() {
    let cluster = Cluster::start(3, 0);
    let nodes: Vec<String> = cluster.nodes().iter().map(|node| format!("\"{}\"", node.url())).collect();
    let (_folder, serve) = serve(&format!("  redis: {{ topology: cluster, nodes: [{}] }}", nodes.join(", ")));
    waits(&serve, "\r\n\r\nready\n");
    let node = &cluster.nodes()[0];
    eventually(SOON, "a marker", || markers(node) > 0);
    let marker = node.keys().into_iter().find(|key| key.ends_with("}probe:marker")).unwrap();
    let migration = cluster.begin_migration(cluster.slot_of(&marker), 1);
    migration.move_keys();
    migration.finish();
    eventually(SOON, "a marker in another slot", || markers(node) > 0);
    further_looks(node);
    let (_, log) = serve.stop("TERM");
    assert_eq!(lines(&log, "WARN", LOST).len(), 0, "{log}");
}

#[test]
fn a_failover_loses_nothing() {
    let sentinels = Sentinels::start();
    let urls: Vec<String> = sentinels.urls().iter().map(|url| format!("\"{url}\"")).collect();
    let redis = format!("  redis: {{ topology: sentinel, master_name: zoo, nodes: [{}] }}", urls.join(", "));
    let (_folder, serve) = serve(&redis);
    waits(&serve, "\r\n\r\nready\n");
    let [old, new, ..] = &sentinels.servers[..] else { panic!("two servers") };
    eventually(SOON, "a marker", || markers(old) > 0);
    let before = markers(new);
    let _: redis::Value = sentinels.query(1, &["SENTINEL", "FAILOVER", "zoo"]).unwrap();
    eventually(SOON, "the new master has one of its own", || markers(new) >= before.max(1));
    eventually(SOON, "it is ready", || serve.get("/readyz").contains("\r\n\r\nready\n"));
    further_looks(new);
    let (_, log) = serve.stop("TERM");
    assert_eq!(lines(&log, "WARN", LOST).len(), 0, "{log}");
}
