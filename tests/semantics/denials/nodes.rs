//! Two nodes on one Redis, each with denials of its own: what one of them charges, the other does not see.
//!
//! A denial that is older than 10 ms says of the limits that deny what Redis says now. One that is younger may say
//! what was true when Redis was asked. Both are denials that Redis would confirm.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use weir_testing::DecideOne as _;
use weir_testing::rules::numbered_limits;

use weir_config::Topology;
use weir_core::algorithm::{Algorithm, Engine, LimitVerdict, Op, Rate, Verdict};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Strategy};
use weir_store::denials::{Denials, DenialsShared};
use weir_store::redis::RedisStore;
use weir_store::{Decision, Store, Verdicts};
use weir_time::clock::{Clock, ManualClock, Monotonic};
use weir_units::{Micros, Retry};

use super::{SECOND, START};
use crate::support::{Counting, redis_store, shared_redis};

/// The largest age of the numbers of a denial that another node's charge can change.
const MAX_STALENESS: u64 = 10_000;

type Answer = (Verdict, Vec<LimitVerdict>);

struct Nodes {
    clock: ManualClock,
    redis: RedisStore,
    nodes: [Denials<Counting<RedisStore>>; 2],
    asked: Arc<AtomicUsize>,
}

impl Nodes {
    async fn on(url: String, max_age: Micros) -> Self {
        let clock = ManualClock::at(START);
        let shared = Clock::Manual(clock.clone());
        let asked = Arc::new(AtomicUsize::new(0));
        let store = async || redis_store(vec![url.clone()], Topology::Single, shared.clone()).await;
        let node = async || {
            let denials = DenialsShared::new(max_age, Monotonic::from_clock(&shared));
            denials.before(Counting(store().await, Arc::clone(&asked)))
        };
        let (redis, nodes) = (store().await, [node().await, node().await]);
        Self { clock, redis, nodes, asked }
    }

    /// One decision by a node, and whether Redis was asked.
    async fn ask(
        &self,
        node: usize,
        rules: &Arc<Strategy>,
        consumer: &str,
        op: Op,
        cost: u64,
    ) -> (Answer, bool) {
        let before = self.asked.load(SeqCst);
        let answer = decide(&self.nodes[node], rules, consumer, op, cost).await;
        (answer, self.asked.load(SeqCst) > before)
    }

    /// Returns what Redis says now.
    async fn truth(&self, rules: &Arc<Strategy>, consumer: &str, cost: u64) -> Answer {
        decide(&self.redis, rules, consumer, Op::Peek, cost).await
    }

    fn pass(&self, time: u64) {
        self.clock.set(Micros(self.clock.now().0 + time));
    }
}

async fn decide<S: Store>(store: &S, rules: &Arc<Strategy>, consumer: &str, op: Op, cost: u64) -> Answer {
    let subject = Subject { resource: "r", consumer, ..Subject::default() };
    let decision = Decision::new(rules, subject, Op::Peek, &[]);
    let mut out = Verdicts::default();
    store.decide_one(&decision, op, &[cost], &mut out).await.unwrap();
    (out.decisions[0], out.limits.to_vec())
}

/// Limits of four or so that come back within two seconds: of every engine, and of one with a gap.
fn every_engine() -> [Algorithm; 7] {
    let two = Micros::from_secs(2);
    [
        Algorithm::bucket(4, Rate { count: 2, period: Micros::from_secs(1) }),
        Algorithm::fixed_window(4, two, false, false),
        Algorithm::interval_refill(4, 2, Micros::from_secs(1), true),
        Algorithm::sliding_log(4, two),
        Algorithm::strict_log(4, two, false, Micros::from_millis(70)),
        Algorithm::sliding_window(4, two),
        Algorithm::bucketed_window(4, two, 10, true),
    ]
    .map(Result::unwrap)
}

/// Of a name of its own; the last of several limits is shared by all consumers.
fn rules(algorithms: &[Algorithm]) -> Arc<Strategy> {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    let name = format!("two-nodes-{}", NAMES.fetch_add(1, SeqCst));
    let scopes: [&[Field]; 2] = [&[Field::Resource, Field::Consumer], &[Field::Resource]];
    let limits = numbered_limits(scopes.into_iter().zip(algorithms.iter().copied()));
    Arc::new(Strategy::new(&name, limits, false, FailurePolicy::Error).unwrap())
}

/// The example of a fault: a cost of 3 is denied with 2 left, and the other node takes them. The first node went on
/// saying for a second that 2 remain and that 3 pass soon.
#[tokio::test]
async fn what_another_node_takes_is_seen_within_ten_milliseconds() {
    for algorithm in every_engine() {
        let nodes = Nodes::on(shared_redis().url(), Micros::from_secs(60)).await;
        let rules = rules(&[algorithm]);
        assert!(nodes.ask(0, &rules, "c", Op::Charge, 2).await.0.0.allowed);
        // After the gap, where there is one.
        nodes.pass(80_000);
        assert_eq!(nodes.ask(0, &rules, "c", Op::Charge, 3).await.0.1[0].remaining, 2, "{algorithm:?}");
        assert!(nodes.ask(1, &rules, "c", Op::Charge, 1).await.0.0.allowed);
        nodes.pass(MAX_STALENESS);
        let ((verdict, limits), _) = nodes.ask(0, &rules, "c", Op::Charge, 3).await;
        assert_eq!((verdict, limits), nodes.truth(&rules, "c", 3).await, "{algorithm:?}");
    }
}

/// Two nodes charge and are denied in a random order, at random times: of one limit, of two that deny each other's
/// charges, and of every engine.
#[tokio::test]
async fn what_is_older_says_of_the_limits_that_deny_what_redis_says() {
    let engines = every_engine();
    let one = engines.iter().map(|engine| vec![*engine]);
    let two = engines.iter().flat_map(|first| engines.iter().map(move |second| vec![*first, *second]));
    let mut seen = Seen::default();
    for (seed, limits) in one.chain(two).enumerate() {
        let nodes = Nodes::on(shared_redis().url(), Micros::from_secs(60)).await;
        compare(&nodes, &rules(&limits), seed as u64, &mut seen).await;
    }
    println!("{seen:?}");
    assert!(seen.old > 500 && seen.young > 500 && seen.stale > 0, "{seen:?}");
}

/// Denials that were answered without Redis.
#[derive(Debug, Default)]
struct Seen {
    /// Of those younger than 10 ms, and how many of them had old numbers.
    young: usize,
    stale: usize,
    old: usize,
}

async fn compare(nodes: &Nodes, rules: &Arc<Strategy>, seed: u64, seen: &mut Seen) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut asked_at = HashMap::new();
    for _ in 0..250 {
        nodes.pass([0, 1_000, 4_000, 9_999, 10_000, 20_000, 100_000, 333_333][next(8) as usize]);
        let (node, cost) = (next(2) as usize, [1, 1, 3][next(3) as usize]);
        let consumer = ["bob", "bob", "eve"][next(3) as usize];
        let truth = nodes.truth(rules, consumer, cost).await;
        let ((verdict, limits), asked) = nodes.ask(node, rules, consumer, Op::Charge, cost).await;
        let now = nodes.clock.now().0;
        if asked {
            asked_at.insert((node, cost, consumer), now);
            continue;
        }
        let age = now - asked_at[&(node, cost, consumer)];
        let story = format!("{rules:?}, seed {seed}: {cost} by {consumer}, {age} µs old");
        assert!(!verdict.allowed && !truth.0.allowed, "{story}");
        let denying = limits.iter().zip(&truth.1).filter(|(known, _)| !known.fits());
        let is_same = denying.into_iter().all(|(known, truth)| {
            // The level is the one that was found when Redis was asked.
            *known == LimitVerdict { level_before: known.level_before, ..*truth }
        });
        if age < MAX_STALENESS {
            seen.young += 1;
            seen.stale += usize::from(!is_same);
        } else {
            seen.old += 1;
            assert!(is_same, "{story}: {limits:#?} are not {:#?}", truth.1);
        }
    }
}

/// Changes that stay unseen for `denials_max_age`, as the documentation says.
#[tokio::test]
async fn a_refund_a_reset_and_a_debit_of_another_node_are_seen_after_the_configured_age() {
    for algorithm in every_engine() {
        for (op, cost) in [(Op::Refund, 4), (Op::Reset, 0), (Op::Force, 3)] {
            let nodes = Nodes::on(shared_redis().url(), Micros::from_millis(300)).await;
            let rules = rules(&[algorithm]);
            assert!(nodes.ask(0, &rules, "c", Op::Charge, 4).await.0.0.allowed);
            nodes.ask(0, &rules, "c", Op::Charge, 1).await;
            nodes.ask(1, &rules, "c", op, cost).await;
            nodes.pass(300_000);
            let truth = nodes.truth(&rules, "c", 1).await;
            let (answer, asked) = nodes.ask(0, &rules, "c", Op::Peek, 1).await;
            assert!(asked && answer == truth, "{op:?} on {algorithm:?}");
        }
    }
}

/// A limit that did not deny fills up meanwhile: its numbers are those of when Redis was asked, until the denial ends.
#[tokio::test]
async fn a_limit_that_fills_up_meanwhile_is_seen_when_the_denial_ends() {
    let slow = Algorithm::fixed_window(4, Micros::from_secs(60), true, false).unwrap();
    let quick = Algorithm::fixed_window(1, Micros::from_secs(1), true, false).unwrap();
    let nodes = Nodes::on(shared_redis().url(), Micros::from_secs(60)).await;
    let rules = rules(&[quick, slow]);
    assert!(nodes.ask(0, &rules, "bob", Op::Charge, 1).await.0.0.allowed);
    let ((denied, limits), _) = nodes.ask(0, &rules, "bob", Op::Charge, 1).await;
    assert_eq!((denied.allowed, limits[1].remaining), (false, 3));
    for consumer in ["eve", "kim", "tom"] {
        assert!(nodes.ask(1, &rules, consumer, Op::Charge, 1).await.0.0.allowed);
    }
    nodes.pass(SECOND - 1);
    let ((_, limits), asked) = nodes.ask(0, &rules, "bob", Op::Charge, 1).await;
    assert_eq!((asked, limits[1].remaining, limits[1].fits()), (false, 3, true), "as the last answer said");
    nodes.pass(1);
    let ((denied, limits), asked) = nodes.ask(0, &rules, "bob", Op::Charge, 1).await;
    assert!(asked && !denied.allowed && limits[0].fits());
    assert_eq!(limits[1].retry, Retry::After(Micros(59 * SECOND)));
}

/// Ten seconds of a call each millisecond to each of two nodes, all with cost 1: Redis is asked for what is admitted,
/// and by each node once for each wait. After a gap more may remain at any time, and so it may of a limit that does not
/// deny and fills up again: such a denial is known for 10 ms.
#[tokio::test]
async fn a_flood_of_cost_one_leaves_redis_idle() {
    const CALLS: u64 = 10_000;
    let window = Algorithm::fixed_window(12, Micros::from_secs(5), false, false).unwrap();
    let one = every_engine().into_iter().map(|engine| vec![engine]);
    let two = every_engine().into_iter().filter(|one| !has_gap(one)).map(|engine| vec![engine, window]);
    for (limits, idle) in one.map(|limits| (limits, 64)).chain(two.map(|limits| (limits, 600))) {
        let nodes = Nodes::on(shared_redis().url(), Micros::from_secs(1)).await;
        let rules = rules(&limits);
        let mut admitted = 0;
        for _ in 0..CALLS {
            for node in 0..2 {
                let ((verdict, _), _) = nodes.ask(node, &rules, "c", Op::Charge, 1).await;
                admitted += u64::from(verdict.allowed);
            }
            nodes.pass(1_000);
        }
        let asked = nodes.asked.load(SeqCst) as u64;
        println!("{limits:?}: {admitted} admitted, {asked} calls");
        let most = if has_gap(&limits[0]) { 2 * CALLS / 10 + 40 } else { idle };
        assert!(asked <= most, "{asked} calls for {admitted} admitted by {limits:?}");
    }
}

fn has_gap(limit: &Algorithm) -> bool {
    matches!(limit.engine(), Engine::Log(log) if log.min_gap > 0)
}
