//! Many changes as one: all or none of them, on memory and on Redis, and whether a change was made.

use weir_proto::v1::{
    ChangeResult, EntryPut, FindChangeRequest, FindChangeResponse, PutManyRequest, PutManyResponse, entry_put,
};
use weir_testing::RedisServer;

use super::shared::{node_on, seen};
use super::*;

impl Node {
    async fn put_many(
        &self,
        changes: Vec<EntryPut>,
        options: ChangeOptions,
    ) -> Result<PutManyResponse, Status> {
        let request = PutManyRequest { changes, options: Some(options) };
        Ok(self.control().await.put_many(request).await?.into_inner())
    }

    async fn find(&self, change: &str) -> Result<FindChangeResponse, Status> {
        let request = FindChangeRequest { change: change.to_owned() };
        Ok(self.control().await.find_change(request).await?.into_inner())
    }
}

fn limited(consumer: &str, text: &str) -> EntryPut {
    let entry = Some(entry_put::Entry::Override(of_consumer(consumer, text)));
    EntryPut { entry, ..EntryPut::default() }
}

fn denied(consumer: &str) -> EntryPut {
    let entry = Some(entry_put::Entry::Access(listed(AccessList::Deny, consumer)));
    EntryPut { entry, ..EntryPut::default() }
}

const ID: &str = "00000000000000ab";

fn under(id: &str) -> ChangeOptions {
    ChangeOptions { change: id.to_owned(), ..why("new rates") }
}

/// The behaviour that both stores share.
async fn all_or_none(one: &Node, other: &Node) {
    one.put_override(of_consumer("bob", "50"), why("")).await.unwrap();
    seen(other, "bob", 50).await;
    let before = one.list().await;
    let absent = Some(EntryVersion::default());
    let refused = [
        (
            vec![limited("eve", "7"), EntryPut { expect_version: absent, ..limited("bob", "60") }],
            Code::Aborted,
        ),
        (vec![denied("mallory"), EntryPut { deletes: true, ..limited("nobody", "") }], Code::NotFound),
        (vec![limited("eve", "7"), limited("bob", "no number")], Code::InvalidArgument),
        (vec![limited("eve", "7"), limited("eve", "8")], Code::InvalidArgument),
        (vec![limited("eve", "7"), EntryPut::default()], Code::InvalidArgument),
    ];
    for (changes, code) in refused {
        let status = one.put_many(changes, why("")).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains("changes[1]") || status.message().contains("twice"), "{status}");
    }
    assert_eq!(one.list().await, before, "nothing is left of calls that were refused");
    assert_eq!((one.limit("eve").await, other.limit("eve").await), (3, 3));
    let dry = ChangeOptions { dry_run: true, ..under(ID) };
    let made = one.put_many(vec![limited("eve", "7")], dry).await.unwrap();
    assert_eq!((made.applied, made.created, made.version), (false, 1, None));
    assert_eq!(one.find(ID).await.unwrap().result(), ChangeResult::NotApplied);

    let changes = vec![limited("eve", "7"), limited("bob", "60"), denied("mallory")];
    let made = one.put_many(changes.clone(), under(ID)).await.unwrap();
    assert_eq!((made.applied, made.created, made.replaced, made.deleted), (true, 2, 1, 0));
    let versions: Vec<_> = one.list().await.entries.into_iter().map(|entry| entry.version).collect();
    assert_eq!(versions, vec![made.version.clone(); 3], "one version");
    assert_eq!((one.limit("eve").await, one.limit("bob").await), (7, 60));
    assert_eq!(one.asks("mallory", 0).await.reason(), Reason::DenyList);
    for (consumer, limit) in [("eve", 7), ("bob", 60)] {
        seen(other, consumer, limit).await;
    }
    let again = one.put_many(changes, under(ID)).await.unwrap();
    assert_eq!((again.applied, &again.version), (true, &made.version), "repeated under its id");
    for node in [one, other] {
        let found = node.find(ID).await.unwrap();
        assert_eq!((found.result(), &found.version), (ChangeResult::Applied, &made.version));
    }
    let gone = vec![EntryPut { deletes: true, ..limited("bob", "") }, limited("eve", "9")];
    let made = one.put_many(gone, why("")).await.unwrap();
    assert_eq!((made.created, made.replaced, made.deleted), (0, 1, 1));
    for node in [one, other] {
        seen(node, "bob", 3).await;
        seen(node, "eve", 9).await;
    }
}

#[tokio::test]
async fn on_memory_all_changes_are_made_or_none() {
    let node = Node::start();
    all_or_none(&node, &node).await;
    let audit = node.audit();
    let many = audit.iter().find(|line| line["method"] == "PutMany" && line["entries"].is_array()).unwrap();
    assert_eq!(many["entries"][0]["after"]["override"]["consumer"], "eve");
    let before = node.list().await;
    let node = node.restarted();
    assert_eq!(node.list().await.entries, before.entries, "the file has them");
    assert_eq!(node.limit("eve").await, 9);
}

#[tokio::test]
async fn on_redis_all_changes_are_made_or_none_on_both_nodes() {
    let redis = RedisServer::start();
    let (one, other) = (node_on(&redis), node_on(&redis));
    all_or_none(&one, &other).await;
    let third = node_on(&redis);
    assert_eq!(third.list().await.entries, one.list().await.entries);
}

#[tokio::test]
async fn a_thousand_entries_are_one_call_and_more_are_refused() {
    let node = Node::start();
    let all = |count: usize| (0..count).map(|number| limited(&format!("c{number}"), "8")).collect::<Vec<_>>();
    let status = node.put_many(all(1_001), why("")).await.unwrap_err();
    assert_eq!(status.message(), "changes has 1001 entries: it must have 1 to 1000");
    assert_eq!(node.put_many(vec![], why("")).await.unwrap_err().code(), Code::InvalidArgument);
    let with_version = ChangeOptions { expect_version: Some(EntryVersion::default()), ..why("") };
    assert_eq!(node.put_many(all(1), with_version).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(node.put_many(all(1_000), why("")).await.unwrap().created, 1_000);
    assert_eq!((node.limit("c0").await, node.limit("c999").await), (8, 8));
    for id in ["x", "00000000000000000", "0"] {
        assert_eq!(node.put_many(all(1), under(id)).await.unwrap_err().code(), Code::InvalidArgument, "{id}");
    }
    assert_eq!(node.find("").await.unwrap_err().code(), Code::InvalidArgument);
}

/// Redis does not answer: nothing was made, or it is not known, and the answer says how to ask.
#[tokio::test]
async fn without_redis_an_answer_says_how_to_ask() {
    let redis = RedisServer::start();
    let node = node_on(&redis);
    drop(redis);
    let status = node.put_many(vec![limited("eve", "7")], under(ID)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains(&format!("weir control applied {ID}")), "{status}");
    assert_eq!(node.find(ID).await.unwrap().result(), ChangeResult::Unknown);
}
