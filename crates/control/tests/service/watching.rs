//! Live control as others see it: watches, the history, reloads.

use super::*;
use weir_proto::v1::{ListChangesRequest, ReloadRequest, WatchEntriesRequest};

#[tokio::test]
async fn a_watch_sends_every_entry_and_then_each_change() {
    let node = Node::start();
    node.put_override(of_consumer("bob", "50"), why("one")).await.unwrap();
    let mut watched = node.control().await.watch_entries(WatchEntriesRequest {}).await.unwrap().into_inner();
    let mut next = async || watched.message().await.unwrap().unwrap().entry.unwrap();
    let first = next().await;
    assert_eq!((first.reason.as_str(), first.deleted), ("one", false));
    node.put_access(listed(AccessList::Deny, "eve"), why("two")).await.unwrap();
    assert_eq!(next().await.reason, "two");
    node.delete(delete_entry_request::Entry::Override(of_consumer("bob", "")), why("three")).await.unwrap();
    let gone = next().await;
    let Some(Entry::Override(one)) = &gone.entry else { panic!("{gone:?}") };
    assert_eq!((gone.deleted, one.consumer.as_str()), (true, "bob"));
}

#[tokio::test]
async fn the_history_has_what_was_before_and_after_the_last_change_first() {
    let node = Node::start();
    node.put_override(of_consumer("bob", "50"), why("one")).await.unwrap();
    node.put_override(of_consumer("bob", "60"), why("two")).await.unwrap();
    node.delete(delete_entry_request::Entry::Override(of_consumer("bob", "")), why("three")).await.unwrap();
    let history = node.control().await.list_changes(ListChangesRequest { limit: Some(2) }).await.unwrap();
    let reasons =
        |entry: &Option<ControlEntry>| entry.as_ref().map(|entry| (entry.reason.clone(), entry.deleted));
    let seen: Vec<_> =
        history.get_ref().changes.iter().map(|it| (reasons(&it.before), reasons(&it.after))).collect();
    let of = |reason: &str, deleted| Some((reason.to_owned(), deleted));
    assert_eq!(seen, [(of("two", false), of("three", true)), (of("one", false), of("two", false))]);
}

#[tokio::test]
async fn a_reload_by_request_returns_every_mistake() {
    let node = Node::start();
    let reload = async || node.control().await.reload(ReloadRequest {}).await.unwrap().into_inner();
    let good = reload().await;
    assert_eq!((good.mistakes.len(), good.files.len()), (0, 16));
    node.write("strategies: { s: {} }\nnobody: 1\n");
    let bad = reload().await;
    assert!(bad.mistakes.len() >= 2, "{bad:?}");
    assert!(bad.mistakes.iter().any(|line| line.contains("nobody")), "{bad:?}");
    assert_eq!(bad.files, good.files);
    node.write(&FILE.replace("limit: 3", "limit: 4"));
    assert_eq!(reload().await.mistakes, Vec::<String>::new());
    assert_eq!(node.limit("bob").await, 4, "it is in force once the call is answered");
}
