//! The steps of a queue, one by one, on every engine.

use weir_queues::model::{
    ArchiveRule, NewItem, QueueKind, QueueNumbers, QueueOp, QueuePace, QueuePart, QueueRefusal, QueueReply,
    Redelivery, RedeliveryCause,
};
use weir_queues::store::QueueStore;
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world::{self, START, call, call_part, numbers, put, queue, take};

const MAIN: QueuePart = QueuePart::Main;
const DEAD: QueuePart = QueuePart::Dead;

weir_testing::on_every_engine!(world, everything);

async fn everything(store: &impl QueueStore, clock: &ManualClock) {
    what_is_not_acked_comes_again_and_dies(store, clock).await;
    a_nack_delays_and_counts(store, clock).await;
    a_worker_that_lost_its_item_does_not_control_it(store, clock).await;
    an_id_with_another_payload_is_refused(store, clock).await;
    full_dead_letters_keep_an_item_alive(store, clock).await;
    ids_are_known_for_the_visibility(store, clock).await;
    bytes_are_bounded(store).await;
    items_leave_at_the_rate(store, clock).await;
    outcomes_are_kept_for_a_time(store, clock).await;
    a_list_keeps_its_order(store).await;
    large_items_come_in_parts(store).await;
}

async fn what_is_not_acked_comes_again_and_dies(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(QueueNumbers { max_deliveries: Some(2), ..numbers(5) });
    clock.set(Micros(START));
    put(store, &rule, &["a", "b"]).await;
    let taken = call(store, &rule, QueueOp::Take { token: 0, taker: "w1", max_items: 1 }).await;
    let QueueReply::Taken { items, .. } = taken.reply else { panic!() };
    assert_eq!((items[0].deliveries, items[0].again.clone()), (1, None));
    clock.set(Micros(START + 29_999_999));
    assert_eq!(take(store, &rule, MAIN, 9).await.len(), 1, "b, and a is with w1");
    clock.set(Micros(START + 30_000_000));
    let taken = call(store, &rule, QueueOp::Take { token: 0, taker: "w2", max_items: 9 }).await;
    let QueueReply::Taken { items, .. } = taken.reply else { panic!() };
    let again = Redelivery { cause: RedeliveryCause::Visibility, taker: "w1".into() };
    assert_eq!((items.len(), items[0].deliveries, items[0].again.clone()), (1, 2, Some(again)));
    let first = items[0].id;
    clock.set(Micros(START + 90_000_000));
    let taken = call(store, &rule, QueueOp::Take { token: 0, taker: "w3", max_items: 9 }).await;
    let QueueReply::Taken { items, dead_lettered, .. } = taken.reply else { panic!() };
    assert_eq!(
        (items.len(), items[0].deliveries, dead_lettered, taken.depth),
        (1, 2, 1, 1),
        "b again; a is dead"
    );
    let dead = call_part(store, &rule, DEAD, QueueOp::Take { token: 0, taker: "w", max_items: 9 }).await;
    let QueueReply::Taken { items, .. } = dead.reply else { panic!() };
    assert_eq!((&*items[0].payload, items[0].origin, items[0].deliveries), (&b"a"[..], Some(first), 1));
    let acked =
        call_part(store, &rule, DEAD, QueueOp::Ack { tokens: &[], ids: &[items[0].id], outcome: "buried" })
            .await;
    assert_eq!((acked.depth, acked.reply), (0, QueueReply::Settled { done: vec![true], dead_lettered: 0 }));
    let stats = call(store, &rule, QueueOp::Stats { outcomes: 1 }).await;
    let QueueReply::Stats(stats) = stats.reply else { panic!() };
    let totals = stats.totals;
    assert_eq!((totals.accepted, totals.first_deliveries, totals.redelivered_visibility), (2, 2, 2));
    assert_eq!((totals.redelivered_nack, totals.acked, totals.dead_lettered), (0, 0, 1));
    assert_eq!((stats.unacked, stats.bytes, stats.dead_depth, stats.outcomes), (1, 1, 0, 1));
    assert_eq!(stats.oldest_age, Some(Micros(90_000_000)));
    let stats = call_part(store, &rule, DEAD, QueueOp::Stats { outcomes: 1 }).await;
    let QueueReply::Stats(stats) = stats.reply else { panic!() };
    assert_eq!((stats.outcomes, &*stats.newest[0].text), (1, "buried"));
}

async fn a_worker_that_lost_its_item_does_not_control_it(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(QueueNumbers { max_deliveries: None, ..numbers(5) });
    clock.set(Micros(START));
    put(store, &rule, &["a"]).await;
    // Of two tokens that differ in one half only, too.
    let (old, new) = (u64::MAX, u64::MAX - (1 << 40));
    let [of_old, of_new, of_nobody, unchecked] = [[old], [new], [1], [0]];
    let take_as = async |token| {
        let answer = call(store, &rule, QueueOp::Take { taker: "w", max_items: 1, token }).await;
        let QueueReply::Taken { items, .. } = answer.reply else { panic!("{answer:?}") };
        items.first().map(|item| item.id)
    };
    let settled = async |op| {
        let QueueReply::Settled { done, .. } = call(store, &rule, op).await.reply else { panic!() };
        done[0]
    };
    let id = take_as(old).await.unwrap();
    clock.set(Micros(START + 30_000_000));
    assert_eq!(take_as(new).await, Some(id));
    let (ids, delay, visibility) = (&[id], Micros::ZERO, Micros::from_secs(3600));
    for tokens in [&of_old, &of_nobody] {
        assert!(!settled(QueueOp::Nack { ids, tokens, delay }).await);
        assert!(!settled(QueueOp::Extend { ids, tokens, visibility }).await);
        assert!(!settled(QueueOp::Ack { ids, tokens, outcome: "done" }).await);
    }
    assert_eq!(take_as(1).await, None, "it is with its owner");
    let stats = call(store, &rule, QueueOp::Stats { outcomes: 9 }).await;
    let QueueReply::Stats(stats) = stats.reply else { panic!("{stats:?}") };
    assert_eq!((stats.totals.acked, stats.outcomes, stats.unacked), (0, 0, 1));

    // The owner gets more time, from now on.
    clock.set(Micros(START + 59_000_000));
    let visibility = Micros::from_secs(40);
    assert!(settled(QueueOp::Extend { ids, tokens: &of_new, visibility }).await);
    clock.set(Micros(START + 98_999_999));
    assert_eq!(take_as(1).await, None);
    clock.set(Micros(START + 99_000_000));
    // A node without tokens delivers it: only a call without a token fits.
    assert_eq!(take_as(0).await, Some(id));
    assert!(!settled(QueueOp::Ack { ids, tokens: &of_new, outcome: "" }).await);
    assert!(settled(QueueOp::Nack { ids, tokens: &unchecked, delay }).await);
    assert_eq!(take_as(old).await, Some(id));
    assert!(settled(QueueOp::Ack { ids, tokens: &of_old, outcome: "" }).await);
    assert!(!settled(QueueOp::Extend { ids, tokens: &[], visibility }).await, "it is gone");
}

async fn an_id_with_another_payload_is_refused(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(numbers(9));
    clock.set(Micros(START));
    let item = |id, digest| NewItem { id, payload: b"x", digest };
    let put = async |items: &[NewItem<'_>]| call(store, &rule, QueueOp::Enqueue { items }).await;
    let (one, other) = (7, 7 | 1 << 100);
    put(&[item("a", one), item("b", 0)]).await;
    let refused = put(&[item("new", one), item("a", one), item("a-2", one), item("a", other)]).await;
    assert_eq!((refused.reply, refused.depth), (QueueReply::Refused(QueueRefusal::OtherPayload(3)), 2));
    // The same one is accepted once more. One without a digest, now or then, is not compared.
    let again = put(&[item("a", one), item("b", other)]).await;
    assert!(matches!(again.reply, QueueReply::Accepted { added: 0, .. }), "{again:?}");
    let again = put(&[item("a", 0)]).await;
    assert!(matches!(again.reply, QueueReply::Accepted { added: 0, .. }), "{again:?}");
    // Once the id is forgotten, it is free.
    clock.set(Micros(START + 30_000_000));
    let free = put(&[item("a", other)]).await;
    assert!(matches!(free.reply, QueueReply::Accepted { added: 1, .. }), "{free:?}");
    let refused = put(&[item("a", one)]).await;
    assert_eq!(refused.reply, QueueReply::Refused(QueueRefusal::OtherPayload(0)));
}

async fn a_nack_delays_and_counts(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(QueueNumbers { max_deliveries: Some(2), ..numbers(5) });
    clock.set(Micros(START));
    put(store, &rule, &["a", "b"]).await;
    let a = take(store, &rule, MAIN, 1).await[0].1;
    let delay = Micros(5_000_000);
    let nacked = call(store, &rule, QueueOp::Nack { tokens: &[], ids: &[a], delay }).await;
    assert_eq!(nacked.reply, QueueReply::Settled { done: vec![true], dead_lettered: 0 });
    clock.set(Micros(START + 4_999_999));
    assert_eq!(take(store, &rule, MAIN, 9).await.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(), ["b"]);
    let none = call(store, &rule, QueueOp::Take { token: 0, taker: "w", max_items: 1 }).await;
    let wanted = QueueReply::Taken { items: vec![], next_after: Some(Micros(1)), dead_lettered: 0 };
    assert_eq!(none.reply, wanted, "it says when to ask again");
    clock.set(Micros(START + 5_000_000));
    assert_eq!(take(store, &rule, MAIN, 9).await, [("a".to_owned(), a, 2)]);
    let dead = call(store, &rule, QueueOp::Nack { tokens: &[], ids: &[a], delay }).await;
    assert_eq!((dead.depth, dead.reply), (1, QueueReply::Settled { done: vec![true], dead_lettered: 1 }));
    let gone = call(store, &rule, QueueOp::Nack { tokens: &[], ids: &[a], delay }).await;
    assert_eq!(gone.reply, QueueReply::Settled { done: vec![false], dead_lettered: 0 });
    assert_eq!(take(store, &rule, DEAD, 9).await.len(), 1);
}

async fn full_dead_letters_keep_an_item_alive(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(QueueNumbers { max_deliveries: Some(1), ..numbers(1) });
    clock.set(Micros(START));
    put(store, &rule, &["a"]).await;
    let a = take(store, &rule, MAIN, 1).await[0].1;
    call(store, &rule, QueueOp::Nack { tokens: &[], ids: &[a], delay: Micros::ZERO }).await;
    assert_eq!(put(store, &rule, &["b"]).await.depth, 1, "a is among the dead letters");
    for deliveries in 1..4 {
        let taken = take(store, &rule, MAIN, 1).await;
        assert_eq!((taken[0].0.as_str(), taken[0].2), ("b", deliveries));
        let nack = QueueOp::Nack { tokens: &[], ids: &[taken[0].1], delay: Micros::ZERO };
        let nacked = call(store, &rule, nack).await;
        assert_eq!(nacked.reply, QueueReply::Settled { done: vec![true], dead_lettered: 0 });
    }
    let dead = take(store, &rule, DEAD, 1).await[0].1;
    call_part(store, &rule, DEAD, QueueOp::Ack { tokens: &[], ids: &[dead], outcome: "" }).await;
    let taken = call(store, &rule, QueueOp::Take { token: 0, taker: "w", max_items: 1 }).await;
    let wanted = QueueReply::Taken { items: vec![], next_after: None, dead_lettered: 1 };
    assert_eq!((taken.depth, taken.reply), (0, wanted), "there is a place for it now");
}

async fn ids_are_known_for_the_visibility(store: &impl QueueStore, clock: &ManualClock) {
    let rule = queue(numbers(3));
    clock.set(Micros(START));
    let item = |id| NewItem { digest: 0, id, payload: b"x" };
    let enqueue = async |ids: &[&'static str]| {
        let items: Vec<_> = ids.iter().map(|id| item(id)).collect();
        call(store, &rule, QueueOp::Enqueue { items: &items }).await
    };
    let first = enqueue(&["a", "b"]).await;
    let QueueReply::Accepted { ids, added: 2, .. } = first.reply.clone() else { panic!("{first:?}") };
    let again = enqueue(&["a", "b"]).await;
    assert_eq!(
        (again.depth, again.reply),
        (2, QueueReply::Accepted { ids: ids.clone(), added: 0, dropped: 0 })
    );
    let QueueReply::Accepted { ids: mixed, added: 1, .. } = enqueue(&["b", "c"]).await.reply else {
        panic!()
    };
    assert_eq!(mixed[0], ids[1]);
    assert_eq!(
        enqueue(&["a"]).await.reply,
        QueueReply::Accepted { ids: vec![ids[0]], added: 0, dropped: 0 },
        "also when full"
    );
    assert_eq!(enqueue(&["a", "d"]).await.reply, QueueReply::Refused(QueueRefusal::Full));
    clock.set(Micros(START + 30_000_000));
    assert_eq!(enqueue(&["a"]).await.reply, QueueReply::Refused(QueueRefusal::Full), "it is no longer known");
}

async fn bytes_are_bounded(store: &impl QueueStore) {
    let rule = queue(QueueNumbers { max_bytes: 65_536, ..numbers(100) });
    let large = "x".repeat(40_000);
    assert_eq!(put(store, &rule, &[&large]).await.depth, 1);
    let full = put(store, &rule, &[&large]).await;
    assert_eq!(full.reply, QueueReply::Refused(QueueRefusal::Full));
    let never = put(store, &rule, &[&large, &large]).await;
    assert_eq!(never.reply, QueueReply::Refused(QueueRefusal::Never));
    let id = take(store, &rule, MAIN, 1).await[0].1;
    call(store, &rule, QueueOp::Ack { tokens: &[], ids: &[id], outcome: "" }).await;
    assert_eq!(put(store, &rule, &[&large]).await.depth, 1, "its bytes are free again");
}

async fn items_leave_at_the_rate(store: &impl QueueStore, clock: &ManualClock) {
    for kind in [QueueKind::Stream, QueueKind::List] {
        let pace = Some(QueuePace { count: 3, period: Micros(1_000_000) });
        let max_deliveries = (kind == QueueKind::Stream).then_some(3);
        let rule = queue(QueueNumbers { kind, pace, max_deliveries, ..numbers(9) });
        clock.set(Micros(START));
        put(store, &rule, &["a", "b", "c"]).await;
        assert_eq!(take(store, &rule, MAIN, 9).await.len(), 1, "a burst of 1");
        let none = call(store, &rule, QueueOp::Take { token: 0, taker: "w", max_items: 9 }).await;
        let wanted = QueueReply::Taken { items: vec![], next_after: Some(Micros(333_334)), dead_lettered: 0 };
        assert_eq!(none.reply, wanted);
        clock.set(Micros(START + 333_333));
        assert_eq!(take(store, &rule, MAIN, 9).await, []);
        clock.set(Micros(START + 333_334));
        assert_eq!(take(store, &rule, MAIN, 9).await.len(), 1);
        // The clock stepped back: the next one waits for one interval, and no longer.
        clock.set(Micros(START - 10_000_000));
        assert_eq!(take(store, &rule, MAIN, 9).await, []);
        clock.set(Micros(START - 10_000_000 + 333_334));
        assert_eq!(take(store, &rule, MAIN, 9).await.len(), 1);
    }
}

async fn outcomes_are_kept_for_a_time(store: &impl QueueStore, clock: &ManualClock) {
    let outcomes = ArchiveRule { max: 20, ..ArchiveRule::new(Micros::from_secs(3600)) };
    let rule = queue(QueueNumbers { outcomes, ..numbers(2) });
    clock.set(Micros(START));
    for number in 0..25 {
        put(store, &rule, &["x"]).await;
        let id = take(store, &rule, MAIN, 1).await[0].1;
        call(store, &rule, QueueOp::Ack { tokens: &[], ids: &[id], outcome: &format!("done {number}") })
            .await;
    }
    let stats = async |shown| {
        let answer = call(store, &rule, QueueOp::Stats { outcomes: shown }).await;
        let QueueReply::Stats(stats) = answer.reply else { panic!() };
        stats
    };
    let kept = stats(2).await;
    let texts: Vec<_> = kept.newest.iter().map(|it| (&*it.text, &*it.taker, it.deliveries)).collect();
    assert_eq!((kept.outcomes, texts), (20, vec![("done 24", "worker", 1), ("done 23", "worker", 1)]));
    clock.set(Micros(START + 3_600_000_000));
    assert_eq!(stats(0).await.outcomes, 20);
    clock.set(Micros(START + 3_600_001_000));
    assert_eq!(stats(9).await.outcomes, 0);
}

async fn a_list_keeps_its_order(store: &impl QueueStore) {
    let list = QueueNumbers { kind: QueueKind::List, max_deliveries: None, ..numbers(200) };
    let rule = queue(list);
    let payloads: Vec<String> = (0..150).map(|number| number.to_string()).collect();
    for part in payloads.chunks(50) {
        put(store, &rule, &part.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    let mut taken = Vec::new();
    for most in [1, 7, 100, 100] {
        taken.extend(take(store, &rule, MAIN, most).await.into_iter().map(|(payload, ..)| payload));
    }
    assert_eq!(taken, payloads);
}

/// A call hands out as much as can be no more than a mebibyte.
async fn large_items_come_in_parts(store: &impl QueueStore) {
    for kind in [QueueKind::Stream, QueueKind::List] {
        let rule = queue(QueueNumbers { kind, max_bytes: 1 << 30, ..numbers(100) });
        let large = "x".repeat(65_536);
        put(store, &rule, &vec![&*large; 20]).await;
        put(store, &rule, &["small"; 20]).await;
        assert_eq!(take(store, &rule, MAIN, 100).await.len(), 16);
        assert_eq!(take(store, &rule, MAIN, 100).await.len(), 24);
    }
}
