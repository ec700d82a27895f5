//! Items of streams and of lists.

use std::collections::BTreeMap;

use weir_queues::model::{
    ItemId, NewItem, QueueKind, QueueNumbers, QueueOp, QueuePart, QueueReply, QueueRule,
};
use weir_queues::store::{QueueAsk, QueueStore as _};
use weir_store::StoreError;
use weir_store::redis::RedisStore;
use weir_testing::rights;
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::Guarded;
use crate::support::queues::{START, numbers, queue};

/// The fate of each item, by the answers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Fate {
    accepted: bool,
    /// Handed out by a list, or acked, or found among the dead letters and acked there.
    done: bool,
    /// An Ack was refused, so that it may have been done all the same.
    unsure: bool,
}

/// Producers and workers of one queue.
struct Crew<'a> {
    store: &'a RedisStore,
    rule: &'a QueueRule,
    clock: &'a ManualClock,
    what: String,
    fates: BTreeMap<String, Fate>,
}

impl Crew<'_> {
    async fn ask(&self, part: QueuePart, op: QueueOp<'_>) -> Option<QueueReply> {
        match self.store.queue(&QueueAsk { rule: self.rule, part, op, deadline: None }).await {
            Ok(answer) => Some(answer.reply),
            Err(StoreError::Refused(_)) => None,
            Err(error) => panic!("{}: {error}", self.what),
        }
    }

    /// Puts an item under its own name as the id.
    async fn put(&mut self, name: &str) {
        let items = [NewItem { digest: 0, id: name, payload: name.as_bytes() }];
        let reply = self.ask(QueuePart::Main, QueueOp::Enqueue { items: &items }).await;
        if let Some(QueueReply::Accepted { .. }) = reply {
            self.fates.entry(name.to_owned()).or_default().accepted = true;
        }
    }

    async fn take(&mut self, part: QueuePart, max_items: usize) -> Vec<(String, ItemId)> {
        let reply = self.ask(part, QueueOp::Take { token: 0, taker: "w", max_items }).await;
        let Some(QueueReply::Taken { items, .. }) = reply else { return Vec::new() };
        let mut taken = Vec::new();
        for item in items {
            let name = String::from_utf8(item.payload.to_vec()).unwrap();
            let fate = self.fates.entry(name.clone()).or_default();
            assert!(!fate.done || fate.unsure, "{}: {name} comes again", self.what);
            fate.done |= self.rule.numbers().kind == QueueKind::List;
            taken.push((name, item.id));
        }
        taken
    }

    async fn ack(&mut self, part: QueuePart, (name, id): &(String, ItemId)) {
        let reply = self.ask(part, QueueOp::Ack { tokens: &[], ids: &[*id], outcome: "done" }).await;
        let fate = self.fates.entry(name.clone()).or_default();
        match reply {
            Some(QueueReply::Settled { done, .. }) => fate.done |= done[0],
            _ => fate.unsure = true,
        }
    }

    fn pass(&self, seconds: u64) {
        self.clock.set(Micros(self.clock.now().0 + seconds * 1_000_000));
    }

    /// Works off all that is there.
    async fn drain(&mut self) {
        let mut idle = 0;
        while idle < 4 {
            self.pass(31);
            let taken = self.take(QueuePart::Main, 9).await;
            idle = if taken.is_empty() { idle + 1 } else { 0 };
            for item in &taken {
                self.ack(QueuePart::Main, item).await;
            }
        }
        if self.rule.numbers().kind == QueueKind::Stream {
            for item in &self.take(QueuePart::Dead, 9).await {
                self.ack(QueuePart::Dead, item).await;
            }
        }
    }
}

#[tokio::test]
async fn a_missing_right_loses_no_item() {
    let more = [&rights::of_queues()[..], &["+pexpire"]].concat();
    let guarded = Guarded::start(&more);
    let clock = ManualClock::at(Micros(START));
    let store = guarded.store(Clock::Manual(clock.clone())).await;
    for kind in [QueueKind::Stream, QueueKind::List] {
        let numbers =
            QueueNumbers { kind, max_deliveries: (kind == QueueKind::Stream).then_some(2), ..numbers(20) };
        for right in [&more[..], &["+get", "+set", "+rpush", "+llen", "+lindex", "+time"]].concat() {
            let rule = queue(numbers.clone());
            let what = format!("{kind:?} without {right}");
            let mut crew = Crew { store: &store, rule: &rule, clock: &clock, what, fates: BTreeMap::new() };
            for name in ["a", "b", "c", "d"] {
                crew.put(name).await;
            }
            let first = crew.take(QueuePart::Main, 2).await;
            guarded.withdraw(right);
            crew.put("e").await;
            let second = crew.take(QueuePart::Main, 1).await;
            if kind == QueueKind::Stream {
                crew.ack(QueuePart::Main, &first[0]).await;
                let nack = QueueOp::Nack { tokens: &[], ids: &[first[1].1], delay: Micros::from_secs(5) };
                crew.ask(QueuePart::Main, nack).await;
                for item in &second {
                    crew.ack(QueuePart::Main, item).await;
                }
            }
            crew.ask(QueuePart::Main, QueueOp::Stats { outcomes: 1 }).await;
            // Times end, and some of it is delivered often enough for the dead letters.
            for _ in 0..3 {
                crew.pass(31);
                crew.take(QueuePart::Main, 2).await;
            }
            let page = QueueOp::Browse { after: ItemId::default(), max_items: 9 };
            crew.ask(QueuePart::Main, page).await;
            if kind == QueueKind::Stream {
                let redrive = QueueOp::Redrive { after: ItemId::default(), max_items: 9 };
                crew.ask(QueuePart::Main, redrive).await;
            }
            guarded.grant_all();
            // Its id is known for no longer than an item may be with a worker.
            if !crew.fates.get("e").is_some_and(|fate| fate.accepted) {
                crew.put("e").await;
            }
            crew.drain().await;
            let lost = |fate: &Fate| !(fate.accepted && (fate.done || fate.unsure));
            let lost: Vec<_> = crew.fates.iter().filter(|(_, fate)| lost(fate)).collect();
            assert!(lost.is_empty() && crew.fates.len() == 5, "{}: {:?}", crew.what, crew.fates);
            let Some(QueueReply::Stats(stats)) =
                crew.ask(QueuePart::Main, QueueOp::Stats { outcomes: 0 }).await
            else {
                panic!("{}", crew.what)
            };
            let left = (stats.unacked, stats.bytes, stats.dead_depth);
            assert_eq!(left, (0, 0, 0), "{}", crew.what);
        }
    }
}
