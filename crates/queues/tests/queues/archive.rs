//! The archive of a queue on every engine: each item that left is found, however it left.

use weir_queues::model::{
    ArchiveRule, FullQueue, ItemFate, ItemId, KeptPayload, OutcomeRecord, OutcomeSearch, OutcomeTotals,
    PayloadRule, QueueNumbers, QueueOp, QueuePart, QueueReply, QueueRule, QueueStats,
};
use weir_queues::store::QueueStore;
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world::{self, START, call, numbers, put, queue, take};

const MAIN: QueuePart = QueuePart::Main;
const LAST: ItemId = ItemId { ms: u64::MAX >> 11, seq: 0 };
const ALL: OutcomeSearch<'_> =
    OutcomeSearch { item: None, fate: None, text: "", from_ms: 0, before: LAST, max_items: 100 };

weir_testing::on_every_engine!(world, everything);

async fn everything(store: &impl QueueStore, clock: &ManualClock) {
    more_items_than_ten_times_the_capacity_are_found(store, clock).await;
    each_way_leaves_an_outcome(store, clock).await;
    items_that_are_too_old_leave_outcomes(store, clock).await;
    outcomes_are_found_by_time_way_and_text(store, clock).await;
    the_newest_are_kept(store, clock).await;
    payloads_are_kept_as_the_rule_says(store, clock).await;
}

async fn search(
    store: &impl QueueStore,
    rule: &QueueRule,
    search: OutcomeSearch<'_>,
) -> (Vec<OutcomeRecord>, OutcomeTotals, Option<ItemId>) {
    let answer = call(store, rule, QueueOp::Outcomes(search)).await;
    let QueueReply::Outcomes { found, totals, next } = answer.reply else { panic!("{answer:?}") };
    (found, totals, next)
}

/// All outcomes, page by page, the newest first.
async fn all(store: &impl QueueStore, rule: &QueueRule) -> Vec<OutcomeRecord> {
    let (mut all, mut before) = (Vec::new(), Some(LAST));
    while let Some(id) = before {
        let (found, _, next) = search(store, rule, OutcomeSearch { before: id, ..ALL }).await;
        all.extend(found);
        before = next;
    }
    all
}

async fn stats(store: &impl QueueStore, rule: &QueueRule) -> QueueStats {
    let answer = call(store, rule, QueueOp::Stats { outcomes: 0 }).await;
    let QueueReply::Stats(stats) = answer.reply else { panic!("{answer:?}") };
    stats
}

/// Puts an item in, takes it, and acks it.
async fn work_off(store: &impl QueueStore, rule: &QueueRule, payload: &str, outcome: &str) -> ItemId {
    put(store, rule, &[payload]).await;
    let id = take(store, rule, MAIN, 1).await[0].1;
    call(store, rule, QueueOp::Ack { ids: &[id], tokens: &[], outcome }).await;
    id
}

/// `(item, way, deliveries, taker, text)` of an outcome.
fn brief(record: &OutcomeRecord) -> (ItemId, ItemFate, u64, &str, &str) {
    (record.item, record.fate, record.deliveries, &record.taker, &record.text)
}

/// The archive had ten outcomes for each place, and only of Acks with a text.
async fn more_items_than_ten_times_the_capacity_are_found(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(numbers(10));
    clock.set(Micros(START));
    let mut left = Vec::new();
    for number in 0..130 {
        let text = if number % 2 == 0 { "" } else { "done" };
        left.push((work_off(store, &rule, "work", text).await, ItemFate::Acked, 1, "worker", text));
    }
    left.reverse();
    let found = all(store, &rule).await;
    assert_eq!(found.iter().map(brief).collect::<Vec<_>>(), left);
    assert!(found.iter().all(|record| record.size == 4 && record.payload.is_none()));
    assert!(found.iter().rev().map(|record| record.at).is_sorted());
    assert_eq!(stats(store, &rule).await.outcomes, 130);
}

async fn each_way_leaves_an_outcome(store: &impl QueueStore, clock: &ManualClock) {
    let room = QueueNumbers { max_deliveries: Some(1), when_full: FullQueue::DropOldest, ..numbers(4) };
    let rule = queue(room);
    clock.set(Micros(START));
    put(store, &rule, &["a", "b", "c", "d"]).await;
    let taken = take(store, &rule, MAIN, 4).await;
    let [a, b, c, d] = [0, 1, 2, 3].map(|index| taken[index].1);
    // An Ack beside a Nack that ends in the dead letters.
    call(store, &rule, QueueOp::Ack { ids: &[b], tokens: &[], outcome: "" }).await;
    call(store, &rule, QueueOp::Nack { ids: &[a], tokens: &[], delay: Micros::ZERO }).await;
    let added = put(store, &rule, &["e", "f"]).await;
    let QueueReply::Accepted { ids, .. } = added.reply else { panic!("{added:?}") };
    let (e, f) = (ids[0], ids[1]);
    clock.set(Micros(START + 30_000_000));
    // New items are dropped before those that are due, which go to the dead letters.
    let added = put(store, &rule, &["g", "h"]).await;
    assert!(matches!(added.reply, QueueReply::Accepted { dropped: 2, .. }), "{added:?}");
    let left = take(store, &rule, MAIN, 9).await;
    assert_eq!(left.iter().map(|item| &*item.0).collect::<Vec<_>>(), ["g", "h"]);
    let found = all(store, &rule).await;
    let wanted = [
        (d, ItemFate::DeadLettered, 1, "worker", ""),
        (c, ItemFate::DeadLettered, 1, "worker", ""),
        (f, ItemFate::Dropped, 0, "", ""),
        (e, ItemFate::Dropped, 0, "", ""),
        (a, ItemFate::DeadLettered, 1, "worker", ""),
        (b, ItemFate::Acked, 1, "worker", ""),
    ];
    assert_eq!(found.iter().map(brief).collect::<Vec<_>>(), wanted);
    let (_, totals, _) = search(store, &rule, OutcomeSearch { max_items: 0, ..ALL }).await;
    let counted = OutcomeTotals { acked: 1, dead_lettered: 3, dropped: 2, aged_out: 0 };
    assert_eq!(totals, counted);
    let all = stats(store, &rule).await.totals;
    assert_eq!((all.acked, all.dead_lettered, all.dropped), (1, 3, 2), "the archive has all of them");
}

async fn items_that_are_too_old_leave_outcomes(store: &impl QueueStore, clock: &ManualClock) {
    let minute = Micros::from_secs(60);
    for (max_deliveries, fate) in [(None, ItemFate::AgedOut), (Some(9), ItemFate::DeadLettered)] {
        let rule = queue(QueueNumbers { max_age: Some(minute), max_deliveries, ..numbers(9) });
        clock.set(Micros(START));
        put(store, &rule, &["taken", "new"]).await;
        let taken = take(store, &rule, MAIN, 1).await[0].1;
        clock.set(Micros(START + minute.0 + 1));
        assert_eq!(take(store, &rule, MAIN, 9).await, [], "both are too old");
        let found = all(store, &rule).await;
        let wanted = [(found[0].item, fate, 0, "", ""), (taken, fate, 1, "worker", "")];
        assert_eq!(found.iter().map(brief).collect::<Vec<_>>(), wanted);
        assert_eq!((found[0].size, found[1].size), (3, 5));
        assert_eq!(stats(store, &rule).await.totals.aged_out, 2);
    }
}

async fn outcomes_are_found_by_time_way_and_text(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(QueueNumbers { max_deliveries: Some(1), ..numbers(9) });
    for (second, text) in [(0, "small"), (1, "large"), (2, ""), (3, "small")] {
        clock.set(Micros(START + second * 1_000_000));
        work_off(store, &rule, "x", text).await;
    }
    put(store, &rule, &["y"]).await;
    let id = take(store, &rule, MAIN, 1).await[0].1;
    call(store, &rule, QueueOp::Nack { ids: &[id], tokens: &[], delay: Micros::ZERO }).await;
    let seconds = async |asked| {
        let (found, totals, _) = search(store, &rule, asked).await;
        let OutcomeTotals { acked, dead_lettered, .. } = totals;
        assert_eq!(found.len() as u64, acked + dead_lettered);
        found.iter().map(|record| record.at.ms - START / 1000).collect::<Vec<_>>()
    };
    let small = OutcomeSearch { text: "small", ..ALL };
    assert_eq!(seconds(small).await, [3_000, 0]);
    let until = ItemId { ms: START / 1000 + 3_000, seq: 0 };
    assert_eq!(seconds(OutcomeSearch { before: until, ..small }).await, [0]);
    assert_eq!(
        seconds(OutcomeSearch { from_ms: START / 1000 + 1, before: until, ..ALL }).await,
        [2_000, 1_000]
    );
    let acked = OutcomeSearch { fate: Some(ItemFate::Acked), ..ALL };
    assert_eq!(seconds(acked).await, [3_000, 2_000, 1_000, 0]);
    let dead = OutcomeSearch { fate: Some(ItemFate::DeadLettered), ..ALL };
    assert_eq!(seconds(dead).await, [3_000]);
    assert_eq!(seconds(OutcomeSearch { item: Some(id), ..ALL }).await, [3_000]);
    assert_eq!(seconds(OutcomeSearch { item: Some(id), ..acked }).await, [0; 0]);
    // Pages of what is looked for, and their totals.
    let (found, totals, next) = search(store, &rule, OutcomeSearch { max_items: 3, ..acked }).await;
    assert_eq!((found.len(), totals.acked, next.is_some()), (3, 3, true));
    let rest = OutcomeSearch { before: next.unwrap(), max_items: 3, ..acked };
    let (found, totals, next) = search(store, &rule, rest).await;
    assert_eq!((found.len(), totals.acked, next), (1, 1, None));
}

async fn the_newest_are_kept(store: &impl QueueStore, clock: &ManualClock) {
    let outcomes = ArchiveRule { max: 3, ..ArchiveRule::new(Micros::from_secs(10)) };
    let rule = queue(QueueNumbers { outcomes, ..numbers(9) });
    for second in 0..5 {
        clock.set(Micros(START + second * 1_000_000));
        work_off(store, &rule, "x", &second.to_string()).await;
    }
    let texts = async || all(store, &rule).await.iter().map(|it| it.text.to_string()).collect::<Vec<_>>();
    assert_eq!(texts().await, ["4", "3", "2"]);
    clock.set(Micros(START + 12_000_000));
    assert_eq!(texts().await, ["4", "3", "2"], "the oldest is ten seconds old");
    clock.set(Micros(START + 12_001_000));
    assert_eq!(texts().await, ["4", "3"]);
    // Writes trim once 32 are too many, reads trim at once; so a higher bound finds the same on all engines.
    let rule = queue(QueueNumbers { outcomes, ..numbers(9) });
    for number in 0..40 {
        work_off(store, &rule, "x", &number.to_string()).await;
    }
    let higher = QueueNumbers { outcomes: ArchiveRule::new(outcomes.keep), ..numbers(9) };
    let higher = QueueRule::new(rule.name(), higher).unwrap();
    assert_eq!((all(store, &higher).await.len(), all(store, &rule).await.len()), (7, 3));
    assert_eq!(all(store, &higher).await.len(), 3);
    let none = QueueNumbers { outcomes: ArchiveRule::new(Micros::ZERO), ..numbers(9) };
    let rule = queue(none);
    work_off(store, &rule, "x", "done").await;
    assert_eq!(all(store, &rule).await, []);
}

async fn payloads_are_kept_as_the_rule_says(store: &impl QueueStore, clock: &ManualClock) {
    clock.set(Micros(START));
    let long = "x".repeat(255) + "\u{e9}" + &"y".repeat(1_000);
    let digest = "858582fc9d9e09dda1539a582c03dfb4344877c5";
    for (payload, kept) in [
        (PayloadRule::Head, KeptPayload::Head(long.as_bytes()[..256].into())),
        (PayloadRule::Digest, KeptPayload::Digest(digest.into())),
    ] {
        let outcomes = ArchiveRule { payload, ..ArchiveRule::new(Micros::from_secs(3600)) };
        let room = QueueNumbers { max_deliveries: Some(1), when_full: FullQueue::DropOldest, ..numbers(2) };
        let rule = queue(QueueNumbers { outcomes, ..room });
        work_off(store, &rule, &long, "done").await;
        put(store, &rule, &[&long, &long]).await;
        let id = take(store, &rule, MAIN, 1).await[0].1;
        call(store, &rule, QueueOp::Nack { ids: &[id], tokens: &[], delay: Micros::ZERO }).await;
        put(store, &rule, &[&long, &long]).await;
        let found = all(store, &rule).await;
        let fates: Vec<_> = found.iter().map(|record| record.fate).collect();
        assert_eq!(fates, [ItemFate::Dropped, ItemFate::DeadLettered, ItemFate::Acked]);
        for record in &found {
            assert_eq!(
                (record.size, record.payload.as_ref()),
                (long.len() as u64, Some(&kept)),
                "{record:?}"
            );
        }
    }
}
