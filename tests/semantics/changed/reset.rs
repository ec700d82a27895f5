//! A reset by live control, for each row: another generation starts full, and the one before is as it was.

use super::*;

#[tokio::test]
async fn memory() {
    let clock = ManualClock::at(Micros(START));
    let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(clock.clone()));
    check_all(&store, &clock).await;
}

#[tokio::test]
async fn redis() {
    let clock = ManualClock::at(Micros(START));
    let nodes = vec![support::shared_redis().url()];
    let store = support::redis_store(nodes, Topology::Single, Clock::Manual(clock.clone())).await;
    check_all(&store, &clock).await;
}

#[tokio::test]
async fn cluster() {
    let clock = ManualClock::at(Micros(START));
    let nodes = support::shared_cluster().urls();
    let store = support::redis_store(nodes, Topology::Cluster, Clock::Manual(clock.clone())).await;
    check_all(&store, &clock).await;
}

async fn check_all<S: Store>(store: &S, clock: &ManualClock) {
    for (number, row) in rows::ROWS.iter().enumerate() {
        let consumer = format!("reset {number}");
        let ask = async |strategy: &Arc<Strategy>, op, cost, at: u64| {
            clock.set(Micros(START + at * 1000));
            let subject = Subject { resource: "changed", consumer: &consumer, ..Subject::default() };
            let mut out = Verdicts::default();
            let decision = Decision::new(strategy, subject, Op::Peek, &[]);
            store.decide_one(&decision, op, &[cost], &mut out).await.unwrap();
            out.limits[0]
        };
        let (old, new) = (strategy(row.old), strategy(row.new));
        for &(at, cost) in row.spent {
            ask(&old, Op::Charge, cost, at).await;
        }
        let before = ask(&old, Op::Peek, 0, row.at).await;
        let fresh = ask(&generation(&new, 1), Op::Peek, 0, row.at).await;
        for reset in [generation(&new, 2), generation(&old, 2)] {
            let full = ask(&reset, Op::Peek, 0, row.at).await;
            assert_eq!(full.reset_after, Micros::ZERO, "{} → {}", row.old, row.new);
        }
        ask(&generation(&new, 2), Op::Charge, 1, row.at).await;
        let again = ask(&generation(&new, 1), Op::Peek, 0, row.at).await;
        assert_eq!(again, fresh, "{}: generations share nothing", row.new);
        assert_eq!(ask(&old, Op::Peek, 0, row.at).await, before, "{}: what was before stays", row.old);
    }
}

fn generation(strategy: &Arc<Strategy>, generation: u64) -> Arc<Strategy> {
    Arc::new(Strategy::clone(strategy).with_generation(generation))
}
