//! Live control: limits, lists and overrides change while the service runs.

mod bans;
mod bounds;
mod clock;
mod holds;
mod inspected;
mod many;
mod shared;
mod watching;

use std::collections::HashMap;
use std::fs;

use tempfile::TempDir;
use tonic::{Code, Status};
use weir_proto::v1::control_entry::Entry;
use weir_proto::v1::{
    AccessList, ChangeOptions, ControlAccess, ControlEntry, ControlOverride, ControlStrategy, EntryChange,
    EntryVersion, PutAccessRequest, Reason, ShouldAllowRequest, ShouldAllowResponse, StateChange,
    delete_entry_request,
};
use weir_units::Micros;

use crate::support::control::{FILE, Node, listed, numbers, of_consumer, of_strategy, version_of, why};
use crate::support::server::{BASE, Server, ask};
use crate::support::{SOON, eventually_async, scratch};

#[tokio::test]
async fn an_override_raises_the_limit_of_one_consumer_and_keeps_what_is_used() {
    let node = Node::start();
    node.asks("bob", 2).await;
    let put = node.put_override(of_consumer("bob", "50"), why("they paid")).await.unwrap();
    let entry = put.entry.unwrap();
    assert_eq!((entry.reason.as_str(), put.before), ("they paid", None));
    assert_eq!(put.files, numbers(&[("l", "fixed_window: { limit: 3, window: 1h }")]));
    let Some(Entry::Override(one)) = entry.entry else { panic!("{entry:?}") };
    assert_eq!(one.strategy, "s", "the strategy of the resource");
    assert_eq!(node.asks("bob", 1).await.remaining, Some(47));
    assert_eq!(node.limit("eve").await, 3);
    let gone = delete_entry_request::Entry::Override(of_consumer("bob", ""));
    node.delete(gone.clone(), why("they left")).await.unwrap();
    assert_eq!(node.limit("bob").await, 3);
    assert_eq!(node.delete(gone, why("")).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(node.list().await.entries, []);
}

#[tokio::test]
async fn consumers_are_blocked_and_let_through_before_the_lists_of_the_files() {
    let node = Node::start();
    let at_top = FILE.replace("strategies:", "access: { deny: [bad], allow: [good] }\nstrategies:");
    node.write(&at_top);
    eventually_async(SOON, "the list of the file is read", async || {
        node.asks("bad", 0).await.reason() == Reason::DenyList
    })
    .await;
    node.put_access(listed(AccessList::Allow, "bad"), why("a mistake")).await.unwrap();
    node.put_access(listed(AccessList::Deny, "goo*"), why("an attack")).await.unwrap();
    assert_eq!(node.asks("bad", 9).await.reason(), Reason::AllowList);
    assert_eq!(node.asks("good", 0).await.reason(), Reason::DenyList);
    let entry = delete_entry_request::Entry::Access(listed(AccessList::Deny, "goo*"));
    node.delete(entry, why("")).await.unwrap();
    assert_eq!(node.asks("good", 9).await.reason(), Reason::AllowList);
}

#[tokio::test]
async fn the_numbers_of_a_strategy_change_as_is_or_start_full() {
    let node = Node::start();
    node.asks("bob", 2).await;
    node.put_strategy(of_strategy("s", "l", "2"), why("an incident")).await.unwrap();
    let denied = node.asks("bob", 1).await;
    assert_eq!((denied.allowed, denied.remaining), (false, Some(0)), "what is used stays");
    let reset = ControlStrategy { state: StateChange::Reset.into(), ..of_strategy("s", "l", "5") };
    node.put_strategy(reset, why("over")).await.unwrap();
    assert_eq!(node.asks("bob", 1).await.remaining, Some(4), "it starts full");
    // Without numbers of its own it has the files', and its generation stays.
    let entry = delete_entry_request::Entry::Strategy(of_strategy("s", "l", ""));
    node.delete(entry, why("")).await.unwrap();
    assert_eq!(node.asks("bob", 1).await.remaining, Some(1));
    let jobs =
        ControlStrategy { state: StateChange::Reset.into(), ..of_strategy("jobs", "concurrency", "2") };
    let refused = node.put_strategy(jobs.clone(), why("")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("RESET is for rate limits"), "{refused}");
    node.put_strategy(ControlStrategy { state: 0, ..jobs }, why("")).await.unwrap();
}

#[tokio::test]
async fn an_entry_ends_by_itself() {
    let node = Node::start();
    let hour = prost_types::Duration { seconds: 3600, nanos: 0 };
    let options = ChangeOptions { expires_after: Some(hour), ..why("for an hour") };
    let put = node.put_override(of_consumer("bob", "50"), options).await.unwrap();
    assert!(put.entry.unwrap().expires_at.is_some());
    assert_eq!(node.limit("bob").await, 50);
    node.server.clock.set(Micros(BASE.0 + 3_599_000_000));
    assert_eq!(node.limit("bob").await, 50);
    node.server.clock.set(Micros(BASE.0 + 3_600_000_000));
    eventually_async(SOON, "the entry is over", async || node.limit("bob").await == 3).await;
    assert_eq!(node.list().await.entries, []);
}

#[tokio::test]
async fn a_version_that_has_moved_is_refused_with_the_current_one() {
    let node = Node::start();
    let none = ChangeOptions { expect_version: Some(EntryVersion::default()), ..why("") };
    let first = node.put_override(of_consumer("bob", "50"), none.clone()).await.unwrap();
    let stale = node.put_override(of_consumer("bob", "60"), none).await.unwrap_err();
    let version = version_of(&first);
    assert_eq!(stale.code(), Code::Aborted);
    assert!(
        stale.message().contains(&format!("at version {}:{};", version.version, version.change)),
        "{stale}"
    );
    let expected = |version| ChangeOptions { expect_version: Some(version), ..why("") };
    let second = node.put_override(of_consumer("bob", "60"), expected(version.clone())).await.unwrap();
    assert!(version_of(&second).version > version.version);
    assert_eq!(second.before.as_ref().unwrap().version, Some(version));
    let wrong = EntryVersion { change: "ab".to_owned(), ..version_of(&second) };
    assert_eq!(
        node.put_override(of_consumer("bob", "1"), expected(wrong)).await.unwrap_err().code(),
        Code::Aborted
    );
    assert_eq!(node.limit("bob").await, 60);
}

#[tokio::test]
async fn an_entry_that_the_files_do_not_fit_waits_and_comes_back() {
    let node = Node::start();
    node.put_override(of_consumer("bob", "50"), why("")).await.unwrap();
    node.put_strategy(of_strategy("other", "l", "{ rate: 2/s, burst: 9 }"), why("")).await.unwrap();
    node.write(
        &FILE
            .replace("  s: {", "  t: {")
            .replace("strategy: s }", "strategy: t }")
            .replace("burst: 5", "burst: 6"),
    );
    eventually_async(SOON, "the override waits", async || {
        node.list().await.entries.iter().any(|entry| entry.waiting.contains("there is no strategy `s`"))
    })
    .await;
    let entries = node.list().await.entries;
    let waiting: Vec<&ControlEntry> = entries.iter().filter(|entry| !entry.waiting.is_empty()).collect();
    assert_eq!((entries.len(), waiting.len()), (2, 1), "{entries:?}");
    assert_eq!(node.limit("bob").await, 3);
    node.write(FILE);
    eventually_async(SOON, "the override is in force again", async || node.limit("bob").await == 50).await;
    assert!(node.list().await.entries.iter().all(|entry| entry.waiting.is_empty()));
}

#[tokio::test]
async fn entries_live_in_the_file_and_a_damaged_one_is_kept_aside() {
    let node = Node::start();
    node.put_override(of_consumer("bob", "50"), why("")).await.unwrap();
    let reset = ControlStrategy { state: StateChange::Reset.into(), ..of_strategy("s", "l", "7") };
    node.put_strategy(reset, why("")).await.unwrap();
    let before = node.list().await;
    let node = node.restarted();
    assert_eq!((node.limit("bob").await, node.limit("eve").await), (50, 7));
    assert_eq!(node.list().await, before);
    fs::write(node.path("entries"), b"rubbish").unwrap();
    let node = node.restarted();
    assert_eq!(node.limit("bob").await, 3);
    assert_eq!(fs::read(node.path("entries.damaged")).unwrap(), b"rubbish");
}

#[tokio::test]
async fn each_change_is_in_the_audit_before_it_is_applied() {
    let node = Node::start();
    node.put_override(of_consumer("bob", "50"), why("first")).await.unwrap();
    let stale = ChangeOptions { expect_version: Some(EntryVersion::default()), ..why("second") };
    node.put_override(of_consumer("bob", "60"), stale).await.unwrap_err();
    node.put_override(of_consumer("bob", "70"), ChangeOptions { dry_run: true, ..why("third") })
        .await
        .unwrap();
    let lines = node.audit();
    let seen: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| {
            (line["audit"].as_str().unwrap(), line["reason"].as_str().or(line["result"].as_str()).unwrap())
        })
        .collect();
    assert_eq!(seen[..3], [("asked", "first"), ("result", "applied"), ("asked", "second")]);
    assert!(seen[3].1.starts_with("expect_version: the entry is at version "), "{seen:?}");
    assert_eq!(lines.len(), 4, "a dry run leaves no line");
    assert_eq!(lines[2]["before"]["override"]["limits"]["l"], "50");
    assert_eq!(lines[0]["change"], lines[1]["change"]);
}

#[tokio::test]
async fn a_full_disk_refuses_the_change() {
    let folder = scratch::dir("control-");
    fs::write(folder.path().join("weir.yaml"), FILE.replace("audit.jsonl", "/dev/full")).unwrap();
    let node = Node::on(folder);
    let refused = node.put_override(of_consumer("bob", "50"), why("")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().contains("the audit cannot be written"), "{refused}");
    assert_eq!((node.limit("bob").await, node.list().await.entries.len()), (3, 0));
}

/// Names of consumers and reasons are nobody else's, and a deletion has its time on every node.
#[tokio::test]
async fn files_are_private_and_deletions_have_a_time() {
    use std::os::unix::fs::PermissionsExt as _;
    let node = Node::start();
    node.put_access(listed(AccessList::Deny, "eve"), why("abuse")).await.unwrap();
    let entry = delete_entry_request::Entry::Access(listed(AccessList::Deny, "eve"));
    node.delete(entry, why("it was us")).await.unwrap();
    for name in ["audit.jsonl", "entries"] {
        let mode = fs::metadata(node.path(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
    let history = weir_proto::v1::ListChangesRequest { limit: None };
    let changes = node.control().await.list_changes(history).await.unwrap().into_inner().changes;
    let after = changes[0].after.as_ref().unwrap();
    assert!(after.deleted && after.changed_at.is_some(), "{after:?}");
}
