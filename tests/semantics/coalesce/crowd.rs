//! Ten thousand callers of mixed costs on one key, over three nodes: never above the limit, and the answers
//! are those of some order in which every caller is decided while it waits.

use std::sync::Arc;
use std::time::Instant;
use weir_testing::DecideOne as _;

use tokio::sync::Barrier;
use weir_config::{RedisConfig, Topology};
use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::key::{KeySecret, Subject};
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::coalesce::Coalesce;
use weir_store::denials::DenialsShared;
use weir_store::redis::RedisShared;
use weir_store::{Decision, Verdicts};
use weir_time::clock::{Clock, Monotonic};
use weir_units::Micros;

use crate::support::{redis_config, shared_cluster, shared_redis, watched};

const NODES: usize = 3;
/// Callers of each node, who all ask at once, and then again.
const CALLERS: usize = 3_334;
const ROUNDS: usize = 2;
/// A third of what they want.
const LIMIT: u64 = 20_000;

/// What one caller saw.
#[derive(Debug, Clone, Copy)]
struct Seen {
    asked: Instant,
    answered: Instant,
    cost: u64,
    allowed: bool,
    remaining: u64,
}

#[test]
fn redis() {
    in_some_order(vec![shared_redis().url()], Topology::Single);
}

#[test]
fn cluster() {
    in_some_order(shared_cluster().urls(), Topology::Cluster);
}

fn in_some_order(nodes: Vec<String>, topology: Topology) {
    let hour = Micros::from_secs(3600);
    let algorithms = [
        ("bucket", Algorithm::bucket(LIMIT, Rate { count: 1, period: Micros::from_secs(86_400) })),
        ("window", Algorithm::fixed_window(LIMIT, hour, true, false)),
    ];
    for (name, algorithm) in algorithms {
        let strategy_of = |name: &str| strategy(name, algorithm.as_ref().copied().unwrap());
        let all = [(true, true), (true, false), (false, true), (false, false)];
        for (coalesce, denials) in all {
            let config = RedisConfig {
                coalesce,
                max_waiting: CALLERS * ROUNDS,
                ..redis_config(nodes.clone(), topology)
            };
            let name = format!("{name}-{coalesce}-{denials}");
            let seen = crowd(&config, denials, &strategy_of(&name));
            check(&name, denials, seen);
        }
    }
}

/// Three nodes, each a worker's thread, and all callers at once.
fn crowd(config: &RedisConfig, denials: bool, strategy: &Arc<Strategy>) -> Vec<Seen> {
    let start = Arc::new(Barrier::new(NODES * CALLERS));
    let nodes: Vec<_> = (0..NODES)
        .map(|node| {
            let (config, strategy, start) = (config.clone(), Arc::clone(strategy), Arc::clone(&start));
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(callers(node, &config, denials, &strategy, &start))
            })
        })
        .collect();
    nodes.into_iter().flat_map(|node| node.join().unwrap()).collect()
}

async fn callers(
    node: usize,
    config: &RedisConfig,
    denials: bool,
    strategy: &Arc<Strategy>,
    start: &Arc<Barrier>,
) -> Vec<Seen> {
    let shared = RedisShared::new(config, KeySecret::BUILT_IN, Clock::System);
    let denials = DenialsShared::new(Micros::from_secs(if denials { 1 } else { 0 }), Monotonic::System);
    let store = Arc::new(Coalesce::before(denials.before(watched(&shared).await), config));
    let callers = (0..CALLERS).map(|caller| {
        let (store, strategy, start) = (Arc::clone(&store), Arc::clone(strategy), Arc::clone(start));
        tokio::spawn(async move {
            start.wait().await;
            let mut seen = Vec::new();
            for round in 0..ROUNDS {
                let cost = 1 + ((node + 3 * caller + 7 * round) % 5) as u64;
                let subject = Subject { resource: "hot", consumer: "crowd", ..Subject::default() };
                let decision = Decision::new(&strategy, subject, Op::Peek, &[]);
                let (asked, mut out) = (Instant::now(), Verdicts::default());
                store.decide_one(&decision, Op::Charge, &[cost], &mut out).await.unwrap();
                let (verdict, limits) = out.get(0).unwrap();
                let (allowed, remaining) = (verdict.allowed, limits[0].remaining);
                seen.push(Seen { asked, answered: Instant::now(), cost, allowed, remaining });
            }
            seen
        })
    });
    let callers: Vec<_> = callers.collect();
    let mut seen = Vec::new();
    for caller in callers {
        seen.extend(caller.await.unwrap());
    }
    seen
}

/// Nothing flows back while the test runs, so that what remains tells where in the order an answer stands.
fn check(name: &str, denials: bool, mut seen: Vec<Seen>) {
    assert_eq!(seen.len(), NODES * CALLERS * ROUNDS);
    let mut admitted: Vec<&Seen> = seen.iter().filter(|one| one.allowed).collect();
    admitted.sort_by_key(|one| std::cmp::Reverse(one.remaining));
    let mut left = LIMIT;
    for one in admitted {
        left = left.checked_sub(one.cost).unwrap_or_else(|| panic!("{name}: above the limit"));
        assert_eq!(one.remaining, left, "{name}: no order of the admitted has {one:?}");
    }
    assert_eq!(left, 0, "{name}: a cost of 1 always came again");
    for one in seen.iter().filter(|one| !one.allowed) {
        assert!(one.remaining < one.cost, "{name}: {one:?} is denied, and would fit");
    }
    // A caller that asks after another was answered comes later in the order. A cached denial may miss what another
    // node has admitted since.
    let ordered = |one: &Seen| !denials || one.allowed;
    seen.sort_by_key(|one| one.asked);
    let mut answered: Vec<Seen> = seen.clone();
    answered.sort_by_key(|one| one.answered);
    let (mut before, mut lowest) = (answered.into_iter().peekable(), LIMIT);
    for one in seen.iter().filter(|one| ordered(one)) {
        while let Some(earlier) = before.next_if(|earlier| earlier.answered < one.asked) {
            if ordered(&earlier) {
                lowest = lowest.min(earlier.remaining);
            }
        }
        let took = if one.allowed { one.cost } else { 0 };
        assert!(one.remaining + took <= lowest, "{name}: {one:?} came after {lowest} remained");
    }
}

fn strategy(name: &str, algorithm: Algorithm) -> Arc<Strategy> {
    let name = format!("crowd-{name}");
    let scope = Scope::of(&[Field::Resource, Field::Consumer]);
    let limit = Limit { name: "each".into(), scope, algorithm };
    Arc::new(Strategy::new(&name, vec![limit], false, FailurePolicy::Error).unwrap())
}
