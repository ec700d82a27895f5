//! Live control of several nodes on one Redis.

use weir_proto::v1::ListChangesRequest;
use weir_testing::RedisServer;

use super::*;
use crate::support::eventually;

/// A node on this Redis, by the system's clock.
pub(super) fn node_on(redis: &RedisServer) -> Node {
    let folder = scratch::dir("control-");
    let text = format!("{FILE}store: {{ redis: {{ nodes: ['{}'] }} }}\n", redis.url());
    fs::write(folder.path().join("weir.yaml"), text).unwrap();
    started(folder)
}

fn started(folder: TempDir) -> Node {
    let server = Server::start_by_the_system(Node::config(&folder));
    eventually(SOON, "the service is ready", || server.get("/readyz").0 == 200);
    Node { folder, server }
}

pub(super) async fn seen(node: &Node, consumer: &str, limit: u64) {
    eventually_async(SOON, "the node has the limit", async || node.limit(consumer).await == limit).await;
}

#[tokio::test]
async fn a_change_on_one_node_is_in_force_on_all() {
    let redis = RedisServer::start();
    let (one, other) = (node_on(&redis), node_on(&redis));
    one.put_override(of_consumer("bob", "50"), why("raised")).await.unwrap();
    assert_eq!(one.limit("bob").await, 50, "at once where it was made");
    seen(&other, "bob", 50).await;
    // The node that reads the version of another one may change its entry.
    let version = other.list().await.entries[0].version.clone();
    let expected = ChangeOptions { expect_version: version, ..why("raised again") };
    other.put_override(of_consumer("bob", "60"), expected.clone()).await.unwrap();
    let stale = one.put_override(of_consumer("bob", "70"), expected).await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted);
    seen(&one, "bob", 60).await;
    let all_agree = async || one.list().await == other.list().await;
    eventually_async(SOON, "both have the same entries and know the same last change", all_agree).await;
    let third = node_on(&redis);
    assert_eq!(third.limit("bob").await, 60, "a node that starts has it before its first call");
}

/// `/ui/control` shows the entries in force, and `/ui` which files and version of live control each node has.
#[tokio::test]
async fn the_pages_show_the_entries_and_what_each_node_serves() {
    let redis = RedisServer::start();
    let (one, other) = (node_on(&redis), node_on(&redis));
    let page = |node: &Node, path: &str| -> serde_json::Value {
        serde_json::from_str(&node.server.get(path).1).unwrap()
    };
    assert_eq!(page(&one, "/ui/control")["entries"], serde_json::json!([]));
    one.put_override(of_consumer("bob", "50"), why("a customer's launch")).await.unwrap();
    let entries = page(&one, "/ui/control")["entries"].clone();
    assert_eq!(entries[0]["override"]["consumer"], "bob", "{entries}");
    assert_eq!(entries[0]["reason"], "a customer's launch");
    eventually(SOON, "both nodes show both with the version of the change", || {
        [&one, &other].into_iter().all(|node| {
            let nodes = page(node, "/ui/data")["nodes"].clone();
            let all = nodes.as_array().unwrap();
            let is_served = |of: &serde_json::Value| {
                of["control"] != "0"
                    && of["control"] == nodes[0]["control"]
                    && of["files"] == nodes[0]["files"]
                    && of["state"] == "serving"
            };
            all.len() == 2 && all.iter().all(is_served)
        })
    });
}

#[tokio::test]
async fn a_reset_starts_full_on_all_nodes() {
    let redis = RedisServer::start();
    let (one, other) = (node_on(&redis), node_on(&redis));
    assert_eq!(one.asks("bob", 2).await.remaining, Some(1));
    assert_eq!(other.asks("bob", 1).await.remaining, Some(0), "they share the counter");
    let reset = ControlStrategy { state: StateChange::Reset.into(), ..of_strategy("s", "l", "5") };
    one.put_strategy(reset, why("")).await.unwrap();
    assert_eq!(one.asks("bob", 1).await.remaining, Some(4));
    seen(&other, "eve", 5).await;
    assert_eq!(other.asks("bob", 1).await.remaining, Some(3), "they share the new counter");
}

#[tokio::test]
async fn entries_survive_a_redis_that_lost_its_data() {
    let redis = RedisServer::start();
    let (one, other) = (node_on(&redis), node_on(&redis));
    one.put_override(of_consumer("bob", "50"), why("")).await.unwrap();
    one.put_access(listed(AccessList::Deny, "eve"), why("")).await.unwrap();
    one.delete(delete_entry_request::Entry::Access(listed(AccessList::Deny, "eve")), why("")).await.unwrap();
    seen(&other, "bob", 50).await;
    redis::cmd("FLUSHALL").exec(&mut redis.connection()).unwrap();
    let third = node_on(&redis);
    seen(&third, "bob", 50).await;
    assert_eq!(third.asks("eve", 0).await.reason(), Reason::Ok, "no deletion is undone");
    for node in [&one, &other] {
        assert_eq!(node.list().await.entries, third.list().await.entries);
    }
}

#[tokio::test]
async fn a_node_starts_from_its_file_while_redis_is_away_and_says_so() {
    let redis = RedisServer::start();
    let mut node = node_on(&redis);
    // The file is written once a second at most: the last change of a process was lost when it stopped before that.
    for limit in ["50", "60", "70"] {
        node.put_override(of_consumer("bob", limit), why("")).await.unwrap();
    }
    node.server.stop();
    node.server.ended().unwrap();
    drop(redis);
    let server = Server::start_by_the_system(Node::config(&node.folder));
    let node = Node { folder: node.folder, server };
    let list = node.list().await;
    let Some(Entry::Override(kept)) = &list.entries[0].entry else { panic!("{list:?}") };
    assert_eq!((list.entries.len(), kept.limits["l"].as_str()), (1, "70"));
    assert!(list.incomplete.contains("Redis"), "{list:?}");
    let refused = node.put_override(of_consumer("eve", "50"), why("")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
}

/// After a loss, a node that knew an older change than another took a change that expected it: both were acknowledged.
#[tokio::test]
async fn a_version_is_not_expected_while_lost_changes_are_sent_back() {
    let redis = RedisServer::start();
    let (one, other) = (node_on(&redis), node_on(&redis));
    let expecting = |version| ChangeOptions { expect_version: version, ..why("") };
    let eve = || listed(AccessList::Deny, "eve");
    let mut last = one.put_access(eve(), why("")).await.unwrap().entry.unwrap().version;
    let knows = async || other.list().await.version == last;
    eventually_async(SOON, "the other node knows it", knows).await;
    eventually_async(SOON, "a node that has just found the loss refuses", async || {
        redis.cli(&["FLUSHALL"]);
        match other.put_access(eve(), expecting(last.clone())).await {
            Ok(done) => {
                last = done.entry.unwrap().version;
                false
            }
            Err(status) => {
                status.code() == Code::Unavailable && status.message().contains("has lost changes")
            }
        }
    })
    .await;
    // What was lost is there again, and of two changes that expect one version one is made.
    let mut made = None;
    eventually_async(SOON, "a change is made", async || {
        made = one.put_access(eve(), expecting(last.clone())).await.ok();
        made.is_some()
    })
    .await;
    eventually_async(SOON, "the other is too late", async || {
        other.put_access(eve(), expecting(last.clone())).await.unwrap_err().code() == Code::Aborted
    })
    .await;
}

/// Deletions of other nodes had nothing but their key, and no change named its node.
#[tokio::test]
async fn the_history_of_each_node_has_the_changes_of_all_with_caller_node_and_time() {
    let redis = RedisServer::start();
    let named = |name: &str| {
        let folder = scratch::dir("control-");
        let usage = format!("usage: {{ node: {name} }}\n");
        let text = format!("{FILE}{usage}store: {{ redis: {{ nodes: ['{}'] }} }}\n", redis.url());
        fs::write(folder.path().join("weir.yaml"), text).unwrap();
        started(folder)
    };
    let (one, other) = (named("one"), named("other"));
    let put = one.put_access(listed(AccessList::Deny, "eve"), why("abuse")).await.unwrap();
    let entry = delete_entry_request::Entry::Access(listed(AccessList::Deny, "eve"));
    eventually_async(SOON, "the other node has the entry", async || !other.list().await.entries.is_empty())
        .await;
    let gone = other.delete(entry, why("it was us")).await.unwrap();
    let changes = async |node: &Node| {
        let request = ListChangesRequest { limit: None };
        node.control().await.list_changes(request).await.unwrap().into_inner().changes
    };
    eventually_async(SOON, "both nodes have both changes", async || {
        changes(&one).await.len() == 2 && changes(&other).await.len() == 2
    })
    .await;
    for node in [&one, &other] {
        let changes = changes(node).await;
        let seen = changes.iter().map(|change| change.after.clone().unwrap());
        let expected = [("other", "it was us", version_of(&gone)), ("one", "abuse", version_of(&put))];
        for (after, (name, reason, version)) in seen.zip(expected) {
            assert_eq!((after.node.as_str(), after.reason.as_str()), (name, reason));
            assert!(after.by.starts_with("127.0.0.1:") && after.changed_at.is_some(), "{after:?}");
            assert_eq!(after.version, Some(version));
        }
    }
    // The audit of each node has its own change under the same id.
    let id = |node: &Node| node.audit()[0]["change"].as_str().unwrap().to_owned();
    assert_eq!((id(&one), id(&other)), (version_of(&put).change, version_of(&gone).change));
}
