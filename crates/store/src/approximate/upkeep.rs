//! Background work of a node: heartbeats of its places, pushes of what it has admitted, and the end of both.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::task::JoinSet;
use weir_core::approximate::{CountAnswer, CountAsk, HeldPlace, NodePush, PlaceAnswer, PlaceAsk};
use weir_core::strategy::Strategy;
use weir_units::Micros;

use super::moment::NodeMoment;
use super::places::PlaceSet;
use super::table::KeyEntry;
use super::{ApproximateNode, ApproximateShared};
use crate::{CountStore, CounterKey, StoreError};

/// Interval of the checks of strategies and keys.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) const PUSHED_TOGETHER: usize = 100;

/// Shorter pauses between pushes than this are left out: timers count milliseconds.
const SHORTEST_PAUSE: Micros = Micros(2_000);

const LAST_PUSHES: usize = 3;

type Pushed = (u128, Micros, Result<CountAnswer, StoreError>);

impl ApproximateShared {
    /// Takes places for the strategies that `strategies` returns, keeps them, and pushes what the node has admitted. Runs
    /// until it is dropped, on a runtime apart from the workers.
    pub async fn keep<C: CountStore>(&self, counts: C, strategies: impl Fn() -> Vec<Arc<Strategy>>) {
        let mut upkeeps = JoinSet::new();
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let all = strategies();
            let (new, removed) = self.0.sets.set_strategies(all.iter().map(|strategy| &**strategy));
            for set in new {
                let key = counts.places(&set.key_name, &set.bound);
                let upkeep = Upkeep { node: self.clone(), counts: counts.clone(), set, key };
                upkeeps.spawn(async move { tokio::join!(upkeep.heartbeats(), upkeep.pushes()).1 });
            }
            for set in removed {
                let key = counts.places(&set.key_name, &set.bound);
                let upkeep = Upkeep { node: self.clone(), counts: counts.clone(), set, key };
                upkeeps.spawn(async move { upkeep.end().await });
            }
            while upkeeps.try_join_next().is_some() {}
            let node = &self.0;
            node.table.sweep(&NodeMoment { now: node.clock.now(), clocks: &node.clocks });
        }
    }

    /// Pushes everything, and frees the places: the node ends.
    pub async fn finish<C: CountStore>(&self, counts: C) {
        for set in self.0.sets.take_all() {
            let key = counts.places(&set.key_name, &set.bound);
            Upkeep { node: self.clone(), counts: counts.clone(), set, key }.end().await;
        }
    }
}

pub(super) struct Upkeep<C> {
    node: ApproximateShared,
    pub(super) counts: C,
    pub(super) set: Arc<PlaceSet>,
    key: CounterKey,
}

impl<C: CountStore> Upkeep<C> {
    async fn heartbeats(&self) {
        while !self.set.is_ending() {
            let lost = self.heartbeat().await;
            if !lost {
                tokio::time::sleep(self.set.bound.heartbeat().into()).await;
            }
        }
    }

    /// Takes or keeps the place. True if it was lost, so that another one is to be taken.
    async fn heartbeat(&self) -> bool {
        let (node, set) = (self.node(), &self.set);
        let held = set.held();
        let ask = match held {
            Some(HeldPlace { place, incarnation, .. }) => PlaceAsk::Keep { place, incarnation },
            None => PlaceAsk::Take,
        };
        let sent = node.clock.now();
        let answer = self.counts.place(&self.key, &set.bound, ask).await;
        match answer {
            Ok(PlaceAnswer::Holds { place, incarnation, now: time }) => {
                let received = node.clock.now();
                let server = self.counts.server_of(&self.key);
                server.into_iter().for_each(|server| node.clocks.learn(server, time, sent, received));
                let clock = server.and_then(|server| node.clocks.of(server));
                let error = clock.map_or(Micros::ZERO, |clock| clock.error(received));
                set.hold(Some(match held {
                    Some(mut held) => {
                        held.keep(&set.bound, sent, error);
                        held
                    }
                    None => HeldPlace::new(&set.bound, (place, incarnation), time, sent, error),
                }));
                false
            }
            Ok(PlaceAnswer::None) => {
                set.hold(None);
                if held.is_none() {
                    set.has_none();
                }
                held.is_some()
            }
            Err(error) => {
                tracing::debug!(strategy = &*set.strategy, %error, "no answer about the node's place");
                false
            }
        }
    }

    async fn pushes(&self) {
        let mut took = Micros::ZERO;
        loop {
            let sync = Micros(self.set.sync.load(Relaxed));
            tokio::time::sleep(Micros(sync.0.saturating_sub(took.0)).into()).await;
            if self.set.is_ending() {
                return;
            }
            let begun = self.node().clock.now();
            self.push_all(self.set.take_owing(), sync).await;
            took = Micros(self.node().clock.now().0.saturating_sub(begun.0));
        }
    }

    /// Pushes what the node owes of these keys, spread over `time`: many at once would delay the decisions of the workers,
    /// and of Redis. What is not answered is pushed the next time.
    async fn push_all(&self, owing: Vec<u128>, time: Micros) {
        let pause = Micros(time.0 / owing.len().div_ceil(PUSHED_TOGETHER).max(1) as u64);
        let mut is_answered = true;
        for (index, digests) in owing.chunks(PUSHED_TOGETHER).enumerate() {
            if !is_answered {
                digests.iter().for_each(|digest| self.set.owe(*digest));
                continue;
            }
            // A node that ends pushes the rest at once.
            if index > 0 && pause >= SHORTEST_PAUSE && !self.set.is_ending() {
                tokio::time::sleep(pause.into()).await;
            }
            let mut calls = JoinSet::new();
            digests.iter().for_each(|digest| self.push(*digest, &mut calls));
            while let Some(pushed) = calls.join_next().await {
                let Ok((push, pushed)) = pushed else { continue };
                is_answered &= pushed.2.is_ok();
                self.pushed(push, pushed);
            }
        }
    }

    fn push(&self, digest: u128, calls: &mut JoinSet<(NodePush, Pushed)>) {
        let node = self.node();
        let moment = NodeMoment { now: node.clock.now(), clocks: &node.clocks };
        let owed = node.table.with(digest, |entry| {
            entry.owed(&moment, digest).map(|(push, limit)| (push, limit, entry.key.clone()))
        });
        let Some((push, limit, key)) = owed.flatten() else { return };
        let (counts, window, sent) = (self.counts.clone(), self.set.bound.window(), moment.now);
        calls.spawn(async move {
            let answer = counts.count(&key, window, CountAsk::of_push(push, limit), None).await;
            (push, (digest, sent, answer))
        });
    }

    fn pushed(&self, push: NodePush, (digest, sent, answer): Pushed) {
        let node = self.node();
        if let Ok(answer) = &answer {
            self.set.over.fetch_max(answer.over, Relaxed);
            self.set.pushed.fetch_add(1, Relaxed);
        }
        let key = node.table.with(digest, |entry| {
            if let Ok(answer) = answer {
                entry.count.learn(push, answer);
            }
            entry.pushed(digest);
            entry.key.clone()
        });
        let server = key.and_then(|key| self.counts.server_of(&key));
        if let (Ok(answer), Some(server)) = (answer, server) {
            node.clocks.learn(server, answer.now, sent, node.clock.now());
            node.table.with(digest, |entry| entry.server = server);
        }
    }

    /// Counts no more, pushes everything, and frees the place. While something of it is not answered the place
    /// stays blocked, for two windows.
    async fn end(&self) {
        self.set.end();
        for _ in 0..LAST_PUSHES {
            match self.owing() {
                owing if owing.is_empty() => break,
                owing => self.push_all(owing, Micros::ZERO).await,
            }
        }
        if let Some(HeldPlace { place, incarnation, .. }) = self.set.held()
            && self.owing().is_empty()
        {
            let free = PlaceAsk::Free { place, incarnation };
            if let Err(error) = self.counts.place(&self.key, &self.set.bound, free).await {
                tracing::debug!(strategy = &*self.set.strategy, %error, "a place was not given back");
            }
        }
    }

    /// The keys of which the node owes something, also those whose push is on its way or was given up.
    fn owing(&self) -> Vec<u128> {
        let (node, set) = (self.node(), self.set.number);
        let moment = NodeMoment { now: node.clock.now(), clocks: &node.clocks };
        let owes = |entry: &&KeyEntry| entry.set.number == set && entry.owes(&moment);
        node.table.digests(|entry| Some(entry).filter(owes).map(|entry| Arc::clone(&entry.key.name)))
    }

    pub(super) fn node(&self) -> &ApproximateNode {
        &self.node.0
    }
}

#[cfg(test)]
mod tests;
