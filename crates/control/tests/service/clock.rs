//! A node whose clock runs ahead of that of Redis.

use std::sync::Arc;

use weir_config::{Topology, WrittenStrategies};
use weir_control::bans::BanGuard;
use weir_control::task::{ChangeAsked, ControlHandle, ControlParts, EntryAsked, PreparedControl};
use weir_core::key::KeySecret;
use weir_core::strategy::Rules;
use weir_node::audit::AuditLog;
use weir_node::overlay_target::{MakeEdits, Overlay, OverlayTarget};
use weir_node::readiness::RefusedFiles;
use weir_node::telemetry::ConfigLoads;
use weir_node::watch::ReloadRequests;
use weir_store::redis::RedisShared;
use weir_testing::{RedisServer, redis_config};
use weir_time::clock::{Clock, ManualClock};

use super::*;
use crate::support::watched;

/// Files without strategies.
struct NoFiles;

impl OverlayTarget for NoFiles {
    fn rules(&self) -> Arc<Rules> {
        Arc::default()
    }

    fn files(&self) -> (Arc<Rules>, Arc<WrittenStrategies>) {
        Default::default()
    }

    fn set_overlay(&self, _: Option<Overlay>) {}

    fn edit_overlay(&self, _: Overlay, _: &MakeEdits<'_>) {}
}

const DAY: u64 = 24 * 3_600_000_000;

/// Live control on a Redis with a clock of its own.
async fn started(
    redis: &RedisServer,
    folder: &TempDir,
    clock: Clock,
) -> (weir_node::owned_thread::OwnedThread, ControlHandle) {
    let config = redis_config(vec![redis.url()], Topology::Single);
    let shared = RedisShared::new(&config, KeySecret::BUILT_IN, Clock::System);
    watched(&shared).await;
    let file = folder.path().join("entries");
    let audit = AuditLog::open(Some(&folder.path().join("audit")), Clock::System).unwrap();
    let link = weir_control::store::ControlLink::open(&shared.scripts());
    let start = move || {
        let (prepared, handle) = PreparedControl::new(ControlParts {
            cache_file: Some(&file),
            node: "one".to_owned(),
            audit: audit.clone(),
            target: Arc::new(NoFiles),
            link: Some(link),
            clock: clock.clone(),
            reloads: ReloadRequests::default(),
            loads: ConfigLoads::default(),
            refused: RefusedFiles::default(),
            bans: BanGuard::new(clock.clone()),
        })
        .unwrap();
        (prepared.begin().unwrap(), handle)
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}

fn denied(consumer: &str, deletes: bool) -> ChangeAsked {
    let entry = Entry::Access(listed(AccessList::Deny, consumer));
    ChangeAsked {
        method: "PutAccess",
        entries: vec![EntryAsked { entry, deletes, resets: false, expect: None }],
        expires_after: None,
        reason: String::new(),
        id: None,
        dry_run: false,
        by: String::new(),
    }
}

/// A deletion is kept for a day by the clock of Redis. A node that runs two days ahead must not forget it: after Redis has lost
/// its data, the entry of a node that was away would come back.
#[tokio::test]
async fn a_node_that_runs_ahead_keeps_deletions_for_the_time_of_redis() {
    let redis = RedisServer::start();
    let (ahead, away) = (scratch::dir("ahead-"), scratch::dir("away-"));
    let early = Clock::Manual(ManualClock::at(Micros(Clock::System.now().0 + 2 * DAY)));
    let (_one, node) = started(&redis, &ahead, early).await;
    node.change(denied("eve", false)).await.unwrap();
    let (other, other_node) = started(&redis, &away, Clock::System).await;
    let has_it = async || other_node.view().living().count() == 1;
    eventually_async(SOON, "the other node has the entry", has_it).await;
    // It ends, and keeps the entry in its file.
    tokio::task::spawn_blocking(move || drop((other_node, other))).await.unwrap();
    node.change(denied("eve", true)).await.unwrap();
    // Each look drops what is old, and then writes the file: the second one begins after the first has ended.
    let cached = || std::fs::read(ahead.path().join("entries")).unwrap();
    for _ in 0..2 {
        let before = cached();
        node.change(denied("zoe", false)).await.unwrap();
        eventually_async(SOON, "it has looked", async || cached() != before).await;
    }
    redis::cmd("FLUSHALL").exec(&mut redis.connection()).unwrap();
    let (_back, back) = started(&redis, &away, Clock::System).await;
    eventually_async(SOON, "both have the same entries", async || {
        let names =
            |node: &ControlHandle| node.view().living().map(|(key, _)| key.to_owned()).collect::<Vec<_>>();
        names(&node) == names(&back) && names(&node).len() == 1
    })
    .await;
    assert!(node.view().living().all(|(key, _)| key.contains("zoe")), "no deletion is undone");
}
