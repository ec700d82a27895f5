//! Batches on a store that answers later: what is asked while it has room, and whose questions these are.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use weir_config::{Config, ServerConfig};
use weir_proto::v1::ShouldAllowBatchRequest;
use weir_store::{Answers, Decision, Store, StoreError};
use weir_testing::{SOON, eventually_async};

use crate::support::server::{Server, ask_under, config};

/// Questions of batches that may wait for the store.
const ROOM: usize = 1024;

/// The largest batch.
const MOST: usize = 1000;

/// Answers nothing until it is opened. Knows the caller of each decision that it was asked for.
#[derive(Clone)]
struct Held {
    callers: Arc<Mutex<Vec<u32>>>,
    opened: watch::Receiver<bool>,
}

impl Store for Held {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for decision in decisions {
            self.callers.lock().push(decision.caller);
            let mut opened = self.opened.clone();
            answers.later(async move {
                opened.wait_for(|opened| *opened).await.expect("the test opens it");
                Err(StoreError::Timeout)
            });
        }
    }
}

fn batch() -> ShouldAllowBatchRequest {
    let ask = |number| ask_under("open", "x", &format!("c{number}"));
    ShouldAllowBatchRequest { requests: (0..MOST).map(ask).collect() }
}

/// Before, all batches that had arrived were put into the queue of Redis, where they expired.
#[tokio::test]
async fn batches_ask_while_there_is_room_and_single_calls_beside_them() {
    let (open, opened) = watch::channel(false);
    let held = Held { callers: Arc::default(), opened };
    let store = held.clone();
    let server = ServerConfig { workers: 1, ..config().server };
    let server = Server::with_store(Config { server, ..config() }, move || store.clone());
    let asked = || held.callers.lock().len();
    let mut flooding = Vec::new();
    for _ in 0..2 {
        let client = server.client().await;
        for _ in 0..3 {
            let mut client = client.clone();
            flooding.push(tokio::spawn(async move { client.should_allow_batch(batch()).await }));
        }
    }
    eventually_async(SOON, "the room is used up", async || asked() > ROOM - 64).await;
    let mut stranger = server.client().await;
    let single = tokio::spawn(async move { stranger.should_allow(ask_under("open", "x", "bob")).await });
    let of_stranger = || {
        let callers = held.callers.lock();
        let last = callers.last().copied().unwrap_or_default();
        callers.iter().filter(|caller| **caller == last).count()
    };
    eventually_async(SOON, "the stranger is asked about", async || of_stranger() == 1).await;
    assert!(asked() <= ROOM + 1, "{} were asked, of 6,000", asked());
    open.send_replace(true);
    for answer in flooding {
        let results = answer.await.unwrap().unwrap().into_inner().results;
        assert_eq!(results.len(), MOST);
    }
    assert!(single.await.unwrap().unwrap().into_inner().degraded);
    assert_eq!(asked(), 6 * MOST + 1);
    let mut callers = std::mem::take(&mut *held.callers.lock());
    callers.sort_unstable();
    callers.dedup();
    assert_eq!(callers.len(), 3, "a number for each connection: {callers:?}");
    assert!(!callers.contains(&0));
}
