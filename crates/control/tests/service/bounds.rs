//! Answers to a bad request of live control: every mistake is named, and nothing is changed.

use super::*;
use weir_proto::v1::ListChangesRequest;

async fn refused(result: Result<EntryChange, Status>, code: Code, parts: &[&str]) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    for part in parts {
        assert!(status.message().contains(part), "{part} is not in: {}", status.message());
    }
}

#[tokio::test]
async fn every_mistake_is_named_with_its_field_value_and_bound() {
    let node = Node::start();
    let second = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let long = "n".repeat(2000);
    let bad = ControlOverride {
        consumer: "a*b".to_owned(),
        resource: long.clone(),
        strategy: long.clone(),
        limits: HashMap::new(),
    };
    let options =
        ChangeOptions { expires_after: second(0), reason: long.clone(), ..ChangeOptions::default() };
    let parts = [
        "override.consumer: \"a*b\"",
        "override.resource",
        "override.strategy",
        "limits has 0 entries",
        "options.reason has 2000 bytes",
        "options.expires_after is 0",
    ];
    refused(node.put_override(bad, options).await, Code::InvalidArgument, &parts).await;
    let endless = ChangeOptions { expires_after: second(i64::MAX), ..ChangeOptions::default() };
    let result = node.put_override(of_consumer("bob", "5"), endless).await;
    refused(result, Code::InvalidArgument, &["options.expires_after"]).await;
    let result = node.put_access(ControlAccess::default(), why("")).await;
    refused(result, Code::InvalidArgument, &["access.list is 0", "access.consumer"]).await;
    let bad = ControlStrategy { strategy: String::new(), limits: numbers(&[("l", &long)]), state: 9 };
    let parts = ["strategy.strategy is empty", "strategy.state is 9", "limits.l has 2000 bytes: at most 512"];
    refused(node.put_strategy(bad, why("")).await, Code::InvalidArgument, &parts).await;
    let two = numbers(&[("l", "{ limit: x, window: 0s }"), ("m", "5")]);
    let result =
        node.put_strategy(ControlStrategy { limits: two, ..of_strategy("s", "l", "") }, why("")).await;
    refused(result, Code::InvalidArgument, &["limits.m: there is no limit of this name"]).await;
    let result = node.put_strategy(of_strategy("s", "l", "{ limit: x, window: 0s }"), why("")).await;
    refused(result, Code::InvalidArgument, &["fixed_window.limit: \"x\"", "fixed_window.window: 0"]).await;
    let result = node
        .put_override(ControlOverride { resource: "y/1".to_owned(), ..of_consumer("bob", "5/s") }, why(""));
    refused(result.await, Code::InvalidArgument, &["only limits that count by consumer"]).await;
    let result = node.delete(
        delete_entry_request::Entry::Strategy(of_strategy("s", "l", "")),
        ChangeOptions { expires_after: second(60), ..why("") },
    );
    refused(result.await, Code::InvalidArgument, &["a deletion has no end"]).await;
    let limit =
        node.control().await.list_changes(ListChangesRequest { limit: Some(1001) }).await.unwrap_err();
    assert_eq!(
        (limit.code(), limit.message()),
        (Code::InvalidArgument, "limit is 1001: it must be 1 to 1000")
    );
    assert_eq!(node.list().await.entries, []);
}

#[tokio::test]
async fn what_does_not_exist_is_not_found_with_names_that_look_like_it() {
    let node = Node::start();
    let result = node.put_strategy(of_strategy("othr", "l", "5/s"), why("")).await;
    refused(result, Code::NotFound, &["there is no strategy `othr`", "other"]).await;
    let one = ControlOverride { resource: "z".to_owned(), ..of_consumer("bob", "5") };
    refused(
        node.put_override(one, why("")).await,
        Code::NotFound,
        &["no pattern of the configuration matches `z`"],
    )
    .await;
    let one = ControlOverride { strategy: "othr".to_owned(), ..of_consumer("bob", "5") };
    refused(node.put_override(one, why("")).await, Code::NotFound, &["there is no strategy `othr`"]).await;
    let one = ControlAccess { strategy: "othr".to_owned(), ..listed(AccessList::Deny, "bob") };
    refused(node.put_access(one, why("")).await, Code::NotFound, &["there is no strategy `othr`"]).await;
}
