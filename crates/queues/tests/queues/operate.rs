//! Operations of operators on a queue, and places that become free without a worker, on every engine.

use weir_queues::model::{
    BrowsedItem, FullQueue, ItemId, NewItem, QueueKind, QueueNumbers, QueueOp, QueueOrder, QueuePart,
    QueueRefusal, QueueReply, QueueRule, QueueStats, QueueTotals,
};
use weir_queues::store::QueueStore;
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world::{self, START, call, call_part, numbers, put, queue, take};

const MAIN: QueuePart = QueuePart::Main;
const DEAD: QueuePart = QueuePart::Dead;

weir_testing::on_every_engine!(world, everything);

async fn everything(store: &impl QueueStore, clock: &ManualClock) {
    browse_shows_items_and_takes_none(store, clock).await;
    pages_follow_each_other(store, clock).await;
    dead_letters_come_back_as_new_items(store, clock).await;
    a_purge_removes_all_and_keeps_the_totals(store, clock).await;
    old_items_go_to_the_dead_letters(store, clock).await;
    old_items_are_dropped_without_dead_letters(store, clock).await;
    a_full_queue_drops_its_oldest(store, clock).await;
    a_list_hands_out_its_newest(store, clock).await;
}

async fn browse(
    store: &impl QueueStore,
    rule: &QueueRule,
    part: QueuePart,
    (after, max_items): (ItemId, usize),
) -> (Vec<BrowsedItem>, Option<ItemId>) {
    let answer = call_part(store, rule, part, QueueOp::Browse { after, max_items }).await;
    let QueueReply::Browsed { items, next } = answer.reply else { panic!("{answer:?}") };
    (items, next)
}

async fn stats(store: &impl QueueStore, rule: &QueueRule) -> QueueStats {
    let answer = call(store, rule, QueueOp::Stats { outcomes: 0 }).await;
    let QueueReply::Stats(stats) = answer.reply else { panic!("{answer:?}") };
    stats
}

fn payloads(items: &[BrowsedItem]) -> Vec<&str> {
    items.iter().map(|item| std::str::from_utf8(&item.payload).unwrap()).collect()
}

async fn browse_shows_items_and_takes_none(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(QueueNumbers { max_deliveries: Some(1), ..numbers(9) });
    clock.set(Micros(START));
    put(store, &rule, &["a", "b", "c"]).await;
    let taken = take(store, &rule, MAIN, 2).await;
    let delay = Micros::from_secs(60);
    clock.set(Micros(START + 10_000_000));
    let other = queue(QueueNumbers { max_deliveries: None, ..numbers(9) });
    put(store, &other, &["x"]).await;
    let x = take(store, &other, MAIN, 1).await[0].1;
    call(store, &other, QueueOp::Nack { ids: &[x], tokens: &[], delay }).await;
    let (items, next) = browse(store, &rule, MAIN, (ItemId::default(), 100)).await;
    assert_eq!((payloads(&items), next), (vec!["a", "b", "c"], None));
    let shown: Vec<_> = items.iter().map(|it| (it.deliveries, it.taker.as_deref(), it.due_after)).collect();
    let held = (1, Some("worker"), Some(Micros::from_secs(20)));
    assert_eq!(shown, [held, held, (0, None, None)]);
    assert!(items.iter().all(|item| !item.is_nacked && item.origin.is_none()));
    let (items, _) = browse(store, &other, MAIN, (ItemId::default(), 1)).await;
    assert!(items[0].is_nacked && items[0].due_after == Some(delay), "{items:?}");
    // It is with its worker as before, and one that is overdue comes again at once.
    assert_eq!(take(store, &rule, MAIN, 9).await.len(), 1, "c");
    let ids = [taken[0].1, taken[1].1];
    call(store, &rule, QueueOp::Nack { ids: &ids, tokens: &[], delay: Micros::ZERO }).await;
    let (dead, _) = browse(store, &rule, DEAD, (ItemId::default(), 9)).await;
    assert_eq!(dead.iter().map(|item| item.origin).collect::<Vec<_>>(), ids.map(Some));
    clock.set(Micros(START + 100_000_000));
    let (items, _) = browse(store, &rule, MAIN, (ItemId::default(), 9)).await;
    assert_eq!((payloads(&items), items[0].due_after), (vec!["c"], Some(Micros::ZERO)));
}

async fn pages_follow_each_other(store: &impl QueueStore, clock: &ManualClock) {
    for kind in [QueueKind::Stream, QueueKind::List] {
        let rule = queue(QueueNumbers { kind, max_deliveries: None, max_bytes: 1 << 30, ..numbers(100) });
        let names: Vec<String> = (0..50).map(|number| format!("item {number}")).collect();
        for (place, part) in names.chunks(7).enumerate() {
            clock.set(Micros(START + place as u64 * 1_000));
            put(store, &rule, &part.iter().map(String::as_str).collect::<Vec<_>>()).await;
        }
        let (mut after, mut seen) = (Some(ItemId::default()), Vec::new());
        while let Some(id) = after {
            let (items, next) = browse(store, &rule, MAIN, (id, 9)).await;
            seen.extend(items.iter().map(|item| String::from_utf8(item.payload.to_vec()).unwrap()));
            after = next;
        }
        assert_eq!(seen, names, "{kind:?}");
        // A page has at most a mebibyte of payloads.
        let large = "x".repeat(65_536);
        put(store, &rule, &vec![&*large; 20]).await;
        let (items, next) = browse(store, &rule, MAIN, (ItemId::default(), 100)).await;
        assert!(next.is_some() && items.len() == 50 + 15, "{kind:?}: {}", items.len());
    }
}

/// Lets items be delivered once each, and die.
async fn kill(store: &impl QueueStore, rule: &QueueRule, names: &[&str]) {
    put(store, rule, names).await;
    let ids: Vec<_> = take(store, rule, MAIN, 100).await.iter().map(|item| item.1).collect();
    let nacked = call(store, rule, QueueOp::Nack { ids: &ids, tokens: &[], delay: Micros::ZERO }).await;
    let QueueReply::Settled { dead_lettered, .. } = nacked.reply else { panic!() };
    assert_eq!(dead_lettered, names.len() as u64);
}

async fn dead_letters_come_back_as_new_items(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(QueueNumbers { max_deliveries: Some(1), ..numbers(3) });
    clock.set(Micros(START));
    kill(store, &rule, &["a", "b", "c"]).await;
    clock.set(Micros(START + 1_000_000));
    let held = take(store, &rule, DEAD, 1).await;
    put(store, &rule, &["d", "e"]).await;
    let redrive = async |after, max_items| {
        let answer = call(store, &rule, QueueOp::Redrive { after, max_items }).await;
        let QueueReply::Redriven { items, next, is_full, dead_depth } = answer.reply else { panic!() };
        (answer.depth, items, next, is_full, dead_depth)
    };
    // Somebody has `a`, and there is a place for one.
    let (depth, items, next, is_full, dead_depth) = redrive(ItemId::default(), 100).await;
    assert_eq!((depth, items.len(), is_full, dead_depth), (3, 1, true, 2));
    let taken = take(store, &rule, MAIN, 9).await;
    assert_eq!(
        taken.iter().map(|item| (&*item.0, item.2)).collect::<Vec<_>>(),
        [("d", 1), ("e", 1), ("b", 1)]
    );
    assert_eq!(taken[2].1, items[0], "it is a new item");
    assert_ne!(next, None);
    let (_, items, next, is_full, _) = redrive(next.unwrap(), 100).await;
    assert_eq!((items.len(), is_full, next.is_some()), (0, true, true), "there is still no place");
    let ids = [taken[0].1, taken[1].1, taken[2].1];
    call(store, &rule, QueueOp::Ack { ids: &ids, tokens: &[], outcome: "" }).await;
    // The time of the worker that has `a` is over.
    clock.set(Micros(START + 31_000_000));
    let (depth, items, next, is_full, dead_depth) = redrive(ItemId::default(), 100).await;
    assert_eq!((depth, items.len(), next, is_full, dead_depth), (2, 2, None, false, 0));
    let gone =
        call_part(store, &rule, DEAD, QueueOp::Ack { ids: &[held[0].1], tokens: &[], outcome: "" }).await;
    assert_eq!(gone.reply, QueueReply::Settled { done: vec![false], dead_lettered: 0 });
    assert_eq!(take(store, &rule, MAIN, 9).await.iter().map(|it| &*it.0).collect::<Vec<_>>(), ["a", "c"]);
    let stats = stats(store, &rule).await;
    let QueueTotals { accepted, redriven, dead_lettered, .. } = stats.totals;
    assert_eq!((accepted, redriven, dead_lettered, stats.bytes), (5, 3, 3, 2));
}

async fn a_purge_removes_all_and_keeps_the_totals(store: &impl QueueStore, clock: &ManualClock) {
    for kind in [QueueKind::Stream, QueueKind::List] {
        let rule = queue(QueueNumbers { kind, max_deliveries: None, ..numbers(4) });
        clock.set(Micros(START));
        let items = ["a", "b", "c"].map(|id| NewItem { id, payload: b"x", digest: 0 });
        call(store, &rule, QueueOp::Enqueue { items: &items }).await;
        let taken = take(store, &rule, MAIN, 1).await;
        let left = if kind == QueueKind::List { 2 } else { 3 };
        let purged = call(store, &rule, QueueOp::Purge).await;
        assert_eq!((purged.depth, purged.reply), (0, QueueReply::Purged { items: left }), "{kind:?}");
        let again = call(store, &rule, QueueOp::Purge).await;
        assert_eq!(again.reply, QueueReply::Purged { items: 0 });
        if kind == QueueKind::Stream {
            let ack = QueueOp::Ack { ids: &[taken[0].1], tokens: &[], outcome: "late" };
            let settled = QueueReply::Settled { done: vec![false], dead_lettered: 0 };
            assert_eq!(call(store, &rule, ack).await.reply, settled, "it is gone");
        }
        let known = call(store, &rule, QueueOp::Enqueue { items: &items }).await;
        assert!(matches!(known.reply, QueueReply::Accepted { added: 0, .. }), "ids stay known: {known:?}");
        put(store, &rule, &["d"]).await;
        assert_eq!(take(store, &rule, MAIN, 9).await.iter().map(|it| &*it.0).collect::<Vec<_>>(), ["d"]);
        let totals = stats(store, &rule).await.totals;
        assert_eq!((totals.accepted, totals.first_deliveries, totals.purged), (4, 2, left), "{kind:?}");
    }
    let rule = queue(QueueNumbers { max_deliveries: Some(1), ..numbers(4) });
    kill(store, &rule, &["a", "b"]).await;
    take(store, &rule, DEAD, 1).await;
    assert_eq!(call_part(store, &rule, DEAD, QueueOp::Purge).await.reply, QueueReply::Purged { items: 2 });
    kill(store, &rule, &["c"]).await;
    assert_eq!(take(store, &rule, DEAD, 9).await.iter().map(|it| &*it.0).collect::<Vec<_>>(), ["c"]);
}

const MINUTE: Micros = Micros::from_secs(60);

async fn old_items_go_to_the_dead_letters(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(QueueNumbers { max_age: Some(MINUTE), max_deliveries: Some(9), ..numbers(3) });
    clock.set(Micros(START));
    put(store, &rule, &["a", "b", "c"]).await;
    assert_eq!(take(store, &rule, MAIN, 1).await.len(), 1, "a");
    clock.set(Micros(START + MINUTE.0));
    assert_eq!(take(store, &rule, MAIN, 1).await[0].0, "a", "nothing is too old");
    clock.set(Micros(START + MINUTE.0 + 1));
    let taken = call(store, &rule, QueueOp::Take { taker: "w", max_items: 9, token: 0 }).await;
    let QueueReply::Taken { items, dead_lettered, .. } = taken.reply else { panic!() };
    assert_eq!((items.len(), taken.aged_out, taken.depth, dead_lettered), (0, 2, 1, 0), "a worker has `a`");
    // An Enqueue that finds no place makes one.
    put(store, &rule, &["d", "e"]).await;
    clock.set(Micros(START + 2 * MINUTE.0 + 2));
    let full = put(store, &rule, &["f"]).await;
    let QueueReply::Accepted { added: 1, dropped: 0, .. } = full.reply else { panic!("{full:?}") };
    assert_eq!((full.aged_out, full.depth), (1, 3), "`a`, which is due; the dead letters are full then");
    // While they are full, old items are handed out.
    clock.set(Micros(START + 4 * MINUTE.0));
    let taken = take(store, &rule, MAIN, 9).await;
    assert_eq!(taken.iter().map(|it| &*it.0).collect::<Vec<_>>(), ["d", "e", "f"]);
    let totals = stats(store, &rule).await.totals;
    assert_eq!((totals.accepted, totals.aged_out, totals.dead_lettered), (6, 3, 3));
    let (dead, _) = browse(store, &rule, DEAD, (ItemId::default(), 9)).await;
    assert_eq!(payloads(&dead), ["b", "c", "a"]);
}

async fn old_items_are_dropped_without_dead_letters(store: &impl QueueStore, clock: &ManualClock) {
    for kind in [QueueKind::Stream, QueueKind::List] {
        let room = QueueNumbers { kind, max_age: Some(MINUTE), max_deliveries: None, ..numbers(3_000) };
        let rule = queue(room);
        clock.set(Micros(START));
        for _ in 0..15 {
            put(store, &rule, &["old"; 100]).await;
        }
        let first = take(store, &rule, MAIN, 1).await;
        assert_eq!(first.len(), 1);
        clock.set(Micros(START + 2 * MINUTE.0));
        put(store, &rule, &["young"]).await;
        // A call removes a thousand at most, and hands out none that is too old.
        let mut aged = 0;
        loop {
            let taken = call(store, &rule, QueueOp::Take { taker: "w", max_items: 9, token: 0 }).await;
            let QueueReply::Taken { items, .. } = &taken.reply else { panic!() };
            assert!(taken.aged_out <= 1_001, "{taken:?}");
            aged += taken.aged_out;
            if let [item] = &items[..] {
                assert_eq!(&*item.payload, b"young");
                break;
            }
            assert!(items.is_empty() && taken.aged_out > 0, "{taken:?}");
        }
        let wanted = if kind == QueueKind::List { 1_499 } else { 1_500 };
        let totals = stats(store, &rule).await.totals;
        assert_eq!((aged, totals.aged_out, totals.dead_lettered), (wanted, wanted, 0), "{kind:?}");
    }
}

async fn a_full_queue_drops_its_oldest(store: &impl QueueStore, clock: &ManualClock) {
    for kind in [QueueKind::Stream, QueueKind::List] {
        let max_deliveries = (kind == QueueKind::Stream).then_some(9);
        let room = QueueNumbers { kind, max_deliveries, when_full: FullQueue::DropOldest, ..numbers(4) };
        let rule = queue(room);
        clock.set(Micros(START));
        put(store, &rule, &["a", "b", "c", "d"]).await;
        let answer = put(store, &rule, &["e"]).await;
        let QueueReply::Accepted { added: 1, dropped: 1, .. } = answer.reply else { panic!("{answer:?}") };
        assert_eq!(answer.depth, 4);
        let (items, _) = browse(store, &rule, MAIN, (ItemId::default(), 9)).await;
        assert_eq!(payloads(&items), ["b", "c", "d", "e"], "{kind:?}");
        let never = put(store, &rule, &["x"; 5]).await;
        assert_eq!(never.reply, QueueReply::Refused(QueueRefusal::Never));
        assert_eq!(take(store, &rule, MAIN, 2).await.len(), 2, "b and c");
        if kind == QueueKind::List {
            assert_eq!(stats(store, &rule).await.totals.dropped, 1);
            continue;
        }
        // What workers have is not dropped, and if the rest is not enough, nothing is.
        let full = put(store, &rule, &["f", "g", "h"]).await;
        assert_eq!((full.reply, full.depth), (QueueReply::Refused(QueueRefusal::Full), 4));
        // New items go first, and then those that are due.
        clock.set(Micros(START + 30_000_000));
        let answer = put(store, &rule, &["f", "g", "h"]).await;
        let QueueReply::Accepted { added: 3, dropped: 3, .. } = answer.reply else { panic!("{answer:?}") };
        let (items, _) = browse(store, &rule, MAIN, (ItemId::default(), 9)).await;
        assert_eq!(payloads(&items), ["c", "f", "g", "h"]);
        let stats = stats(store, &rule).await;
        assert_eq!((stats.totals.accepted, stats.totals.dropped, stats.bytes), (8, 4, 4));
    }
    // Bytes are a bound as places are.
    let bytes = QueueNumbers { max_bytes: 65_536, when_full: FullQueue::DropOldest, ..numbers(100) };
    let rule = queue(bytes);
    put(store, &rule, &["small", &"x".repeat(60_000)]).await;
    let answer = put(store, &rule, &[&"y".repeat(40_000)]).await;
    let QueueReply::Accepted { dropped: 2, .. } = answer.reply else { panic!("{answer:?}") };
}

async fn a_list_hands_out_its_newest(store: &impl QueueStore, clock: &ManualClock) {
    let list = QueueNumbers { kind: QueueKind::List, max_deliveries: None, ..numbers(9) };
    let rule = queue(QueueNumbers { order: QueueOrder::Lifo, max_age: Some(MINUTE), ..list });
    clock.set(Micros(START));
    put(store, &rule, &["a", "b", "c"]).await;
    let names = async |most| {
        let taken = take(store, &rule, MAIN, most).await;
        taken.into_iter().map(|item| item.0).collect::<Vec<_>>()
    };
    assert_eq!(names(2).await, ["c", "b"]);
    clock.set(Micros(START + MINUTE.0));
    put(store, &rule, &["d"]).await;
    assert_eq!(names(1).await, ["d"]);
    assert_eq!(names(9).await, ["a"]);
    put(store, &rule, &["e"]).await;
    clock.set(Micros(START + 3 * MINUTE.0));
    assert_eq!(names(9).await, Vec::<String>::new(), "it is too old");
}
