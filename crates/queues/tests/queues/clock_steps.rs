//! On memory, items are due, paced and known by their ids on time whatever the wall clock does, at any age of the
//! process.

use weir_queues::model::{NewItem, QueueNumbers, QueueOp, QueuePace, QueuePart, QueueReply, QueueRule};
use weir_queues::store::ProcessQueues;
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world::{self, START, call, numbers, put, queue, take};

const MAIN: QueuePart = QueuePart::Main;
const SECOND: u64 = 1_000_000;

/// A process of an age, and a step of its wall clock.
struct Case {
    clock: ManualClock,
    store: ProcessQueues,
    step: i64,
}

impl Case {
    fn pass(&self, time: u64) {
        self.clock.set(Micros(self.clock.now().0 + time));
    }

    fn step(&self) {
        self.clock.step(Micros(self.clock.now().0.saturating_add_signed(self.step * 1_000_000)));
    }

    /// Puts an item with an id; how many are new.
    async fn put_once(&self, rule: &QueueRule) -> u64 {
        let items = [NewItem { digest: 0, id: "id", payload: b"once" }];
        match call(&self.store, rule, QueueOp::Enqueue { items: &items }).await.reply {
            QueueReply::Accepted { added, .. } => added,
            other => panic!("{other:?}"),
        }
    }

    async fn taken(&self, rule: &QueueRule) -> usize {
        take(&self.store, rule, MAIN, 9).await.len()
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for age in [0, 2, 5 * 3600] {
        for step in [-1, -3600, -3650 * 86_400, 3600, 3650 * 86_400] {
            let clock = ManualClock::at(Micros(START));
            let store = world::memory(&clock);
            let case = Case { clock, store, step };
            case.pass(age * SECOND);
            cases.push(case);
        }
    }
    cases
}

#[tokio::test]
async fn what_is_not_acked_comes_again_on_time() {
    for case in cases() {
        let rule = queue(numbers(5));
        put(&case.store, &rule, &["a"]).await;
        assert_eq!(case.taken(&rule).await, 1);
        case.pass(10 * SECOND);
        case.step();
        case.pass(20 * SECOND - 1);
        assert_eq!(case.taken(&rule).await, 0, "{}: it is with a worker", case.step);
        case.pass(1);
        assert_eq!(case.taken(&rule).await, 1, "{}: it is due", case.step);
    }
}

#[tokio::test]
async fn a_nack_delays_for_its_time() {
    for case in cases() {
        let rule = queue(numbers(5));
        put(&case.store, &rule, &["a"]).await;
        let ids = [take(&case.store, &rule, MAIN, 1).await[0].1];
        let delay = Micros(5 * SECOND);
        call(&case.store, &rule, QueueOp::Nack { tokens: &[], ids: &ids, delay }).await;
        case.step();
        case.pass(5 * SECOND - 1);
        assert_eq!(case.taken(&rule).await, 0, "{}", case.step);
        case.pass(1);
        assert_eq!(case.taken(&rule).await, 1, "{}", case.step);
    }
}

#[tokio::test]
async fn ids_are_known_for_their_time() {
    for case in cases() {
        let rule = queue(numbers(5));
        assert_eq!(case.put_once(&rule).await, 1);
        case.step();
        case.pass(30 * SECOND - 1);
        assert_eq!(case.put_once(&rule).await, 0, "{}: it is known", case.step);
        case.pass(1);
        assert_eq!(case.put_once(&rule).await, 1, "{}: it is new", case.step);
    }
}

#[tokio::test]
async fn items_leave_at_the_rate() {
    for case in cases() {
        let pace = Some(QueuePace { count: 1, period: Micros(10 * SECOND) });
        let rule = queue(QueueNumbers { pace, ..numbers(5) });
        put(&case.store, &rule, &["a", "b", "c"]).await;
        assert_eq!(case.taken(&rule).await, 1);
        case.step();
        case.pass(10 * SECOND - 1);
        assert_eq!(case.taken(&rule).await, 0, "{}: before its time", case.step);
        case.pass(1);
        assert_eq!((case.taken(&rule).await, case.taken(&rule).await), (1, 0), "{}", case.step);
    }
}

#[tokio::test]
async fn outcomes_are_kept_for_their_time() {
    for case in cases() {
        let rule = queue(numbers(5));
        put(&case.store, &rule, &["a"]).await;
        let ids = [take(&case.store, &rule, MAIN, 1).await[0].1];
        call(&case.store, &rule, QueueOp::Ack { tokens: &[], ids: &ids, outcome: "done" }).await;
        case.step();
        for (passes, kept) in [(3_600 * SECOND, 1), (1_000, 0)] {
            case.pass(passes);
            let reply = call(&case.store, &rule, QueueOp::Stats { outcomes: 5 }).await.reply;
            let QueueReply::Stats(stats) = reply else { panic!("{reply:?}") };
            assert_eq!(stats.outcomes, kept, "{}", case.step);
        }
    }
}
