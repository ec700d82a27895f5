//! Gives back what is left of chunks: once each, after their time, or when the node ends.

use std::sync::atomic::Ordering::Relaxed;

use tokio::task::JoinSet;
use weir_core::approximate::{ChunkAnswer, ChunkCall, ChunkLeft};

use crate::approximate::upkeep::{PUSHED_TOGETHER, Upkeep};
use crate::{CountStore, CounterKey, StoreError};

/// A call that gave something back, and what became of it.
type GaveBack = (u128, CounterKey, ChunkCall, Result<ChunkAnswer, StoreError>);

impl<C: CountStore> Upkeep<C> {
    /// Gives back everything: the node ends. True if nothing of it can arrive any more, so that its place may be another's.
    pub(in crate::approximate) async fn give_all_back(&self) -> bool {
        self.give_back(true).await;
        let (node, set) = (self.node(), self.set.number);
        let now = node.clock.now();
        node.chunks.all(|entry| entry.set.number != set || entry.count.is_settled(now))
    }

    /// Gives back what is left of old chunks, or of all if the node ends. What is not answered is not given back again: it may
    /// have arrived.
    pub(in crate::approximate) async fn give_back(&self, all: bool) {
        loop {
            let digests = self.set.grown_old(self.node().clock.now(), all, PUSHED_TOGETHER);
            if digests.is_empty() {
                return;
            }
            let mut calls = JoinSet::new();
            for digest in digests {
                self.give_back_of(digest, all, &mut calls);
            }
            while let Some(given) = calls.join_next().await {
                let Ok((digest, key, call, answer)) = given else { continue };
                match answer {
                    Ok(answer) => self.gave_back(digest, &key, &call, &answer),
                    Err(error) => {
                        tracing::debug!(strategy = &*self.set.strategy, %error, "no answer about a chunk that is given back");
                    }
                }
            }
        }
    }

    fn give_back_of(&self, digest: u128, all: bool, calls: &mut JoinSet<GaveBack>) {
        let (node, Some(terms)) = (self.node(), self.set.bound.chunks()) else { return };
        let rest = node.chunks.with(digest, |entry| {
            entry.unlist();
            let moment = entry.moment(node, node.clock.now());
            let left = entry.count.left(&terms, &moment, all);
            entry.list(digest);
            (left, entry.key.clone())
        });
        if let Some((ChunkLeft::GivesBack(call), key)) = rest {
            let counts = self.counts.clone();
            calls.spawn(async move {
                let answer = counts.chunk(&key, call.limit(), &call.ask, None).await;
                (digest, key, call, answer)
            });
        }
    }

    fn gave_back(&self, digest: u128, key: &CounterKey, call: &ChunkCall, answer: &ChunkAnswer) {
        let (node, server) = (self.node(), self.counts.server_of(key));
        self.set.pushed.fetch_add(1, Relaxed);
        if let Some(server) = server {
            node.clocks.learn(server, answer.now, call.sent(), node.clock.now());
        }
        if let Some(after) = answer.verdicts(call.limit(), &call.ask, |_| ()) {
            node.chunks.with(digest, |entry| entry.learn((call, answer, after), server, node, digest));
        }
    }
}
