//! The cost of each operation, beside a ShouldAllow under a token bucket: ns of this thread on the memory store, and
//! µs of the server's own CPU on Redis, by how many callers are ready at once. The medians of turns. Needs
//! `redis-server`.
//!
//! `cargo bench --bench operations`, or of token budgets only: `cargo bench --bench operations -- budgets`
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub)]
#![allow(clippy::disallowed_methods)] // measures real time

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use weir_config::{MemoryConfig, RedisConfig, Topology};
use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::key::{KeySecret, Subject};
use weir_core::strategy::{
    AdaptiveRule, AimdRule, ConcurrencyNumbers, ConcurrencyRule, ControllerRule, FailurePolicy, Field, Limit,
    LimitSource, Scope, Strategy,
};
use weir_leases::model::{LeaseOp, WorkOutcome};
use weir_leases::store::{LeaseAsk, LeaseStore, ProcessLeases};
use weir_store::memory::MemoryStore;
use weir_store::redis::{RedisShared, RedisStore};
use weir_store::{Decision, LimitSet, Part, Store, decide_one};
use weir_testing::RedisServer;
use weir_time::clock::Clock;
use weir_units::Micros;

use budgets::{Budget, BudgetWork};

#[path = "operations/budgets.rs"]
mod budgets;

const KEYS: usize = 6_000;
/// Keys where each has many ends.
const KEYS_OF_ENDS: usize = 500;
const TURNS: usize = 3;
const READY: [usize; 3] = [1, 16, 64];
const RESERVE: Op = Op::Reserve { max_wait: Micros::from_secs(60) };

/// The number of the next call: no id is used twice.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A measured operation.
#[derive(Clone)]
enum Work {
    /// One operation after the other, of cost 1. With an id, each call has its own.
    Decide(Arc<Strategy>, &'static [Op], bool),
    Lease(Arc<Strategy>),
    Budget(Budget, BudgetWork),
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let redis = RedisServer::start();
    print!("{:<36}{:>12}", "", "memory, ns");
    READY.iter().for_each(|ready| print!("{:>14}", format!("Redis of {ready}, µs")));
    println!();
    let is_of_budgets = std::env::args().any(|argument| argument == "budgets");
    let others = if is_of_budgets { Vec::new() } else { rows() };
    for (name, work) in others.into_iter().chain(rows_of_budgets()) {
        print!("{name:<36}");
        let config =
            if matches!(work, Work::Budget(..)) { budgets::roomy() } else { MemoryConfig::default() };
        let memory = MemoryStore::new(&config, Clock::System);
        let memory = median(|| runtime.block_on(on_memory(&memory, &work)));
        print!("{memory:>12.0}");
        for ready in READY {
            redis.cli(&["FLUSHALL", "SYNC"]);
            print!("{:>14.2}", median(|| runtime.block_on(on_redis(&redis, &work, ready))));
        }
        println!();
    }
    runtime.block_on(budgets::one_key(&redis));
    runtime.block_on(budgets::bytes_of_open_holds(&redis));
}

/// Four limits: without costs of their own, and with them by how many ends there are. A settlement is what the last row of each
/// has more than the one before.
fn rows_of_budgets() -> Vec<(String, Work)> {
    let limits = budgets::limits(&budgets::algorithms());
    let plain = Arc::new(Strategy::new("bench", limits, false, FailurePolicy::Error).unwrap());
    let decide = |has_id| Work::Decide(Arc::clone(&plain), &[Op::Charge], has_id);
    let named = |work| Work::Budget(Budget::without_holds(KEYS), work);
    let rows = [
        ("four limits, charge", decide(false)),
        ("named costs, charge", named(BudgetWork::Plain)),
        ("named costs with at_least, charge", named(BudgetWork::AtLeast)),
        ("four limits, charge with an id", decide(true)),
    ];
    let mut rows: Vec<_> = rows.map(|(name, work)| (name.to_owned(), work)).into();
    // 18 are as many as holds of one `max` have.
    for ends in [1, 4, 16, 18] {
        let budget = Budget::new(ends, if ends == 1 { KEYS } else { KEYS_OF_ENDS });
        let row = |name: &str, work| (format!("{name}, {ends} ends"), Work::Budget(budget.clone(), work));
        rows.push(row("budget, charge with an id", BudgetWork::Charge));
        rows.push(row("hold", BudgetWork::Hold));
        rows.push(row("hold + Settle", BudgetWork::HoldAndSettle));
    }
    rows
}

fn median(measure: impl FnMut() -> f64) -> f64 {
    let mut figures: Vec<f64> = std::iter::repeat_with(measure).take(TURNS).collect();
    figures.sort_by(f64::total_cmp);
    figures[TURNS / 2]
}

fn rows() -> Vec<(String, Work)> {
    let rate = Rate { count: 1_000_000, period: Micros::from_secs(1) };
    let scope = Scope::new(&[Field::Resource, Field::Consumer]);
    let algorithm = Algorithm::bucket(1_000_000, rate).unwrap();
    let limits = vec![Limit { name: "l".into(), scope: scope.clone(), algorithm }];
    let bucket = Strategy::new("bench", limits, false, FailurePolicy::Error).unwrap();
    let leases = |source| {
        let (ttl, max_ttl) = (Micros::from_secs(30), Micros::from_secs(3600));
        let numbers = ConcurrencyNumbers { source, ttl, max_ttl, max_weight: None, partitions: None };
        let rule = ConcurrencyRule::new(numbers).unwrap();
        Work::Lease(Arc::new(
            Strategy::of_leases("leases", scope.clone(), rule, FailurePolicy::Error).unwrap(),
        ))
    };
    let controller = ControllerRule::Aimd(AimdRule { backoff: 0.9, timeout: Micros::from_secs(5) });
    let idle = Micros::from_secs(600);
    let aimd = AdaptiveRule { initial: 100, min: 20, max: 200, controller, sampling: None, idle };
    let bucket = Arc::new(bucket);
    let decide = |ops, has_id| Work::Decide(Arc::clone(&bucket), ops, has_id);
    let rows = [
        ("ShouldAllow, token_bucket", decide(&[Op::Charge], false)),
        ("ShouldAllow with an id", decide(&[Op::Charge], true)),
        ("ShouldAllow, at_most", decide(&[Op::AtMost], false)),
        ("Debit", decide(&[Op::Force], false)),
        ("Debit with an id", decide(&[Op::Force], true)),
        ("Reserve", decide(&[RESERVE], true)),
        ("Reserve + CancelReservation", decide(&[RESERVE, Op::Cancel], true)),
        ("Acquire + Release, limit 100", leases(LimitSource::Fixed(100))),
        ("Acquire + Release, aimd", leases(LimitSource::Adaptive(aimd))),
    ];
    rows.map(|(name, work)| (name.to_owned(), work)).into()
}

async fn once(store: &impl Store, leases: &impl LeaseStore, work: &Work) {
    if let Work::Budget(budget, work) = work {
        return budget.next(store, *work).await;
    }
    let number = NEXT.fetch_add(1, Relaxed);
    let consumer = format!("user_{}", number * 7919 % KEYS);
    let subject = Subject { resource: "api", consumer: &consumer, ..Subject::default() };
    match work {
        Work::Decide(strategy, ops, has_id) => {
            let id = if *has_id { number.to_string() } else { String::new() };
            let part = Part { limits: LimitSet::ALL, id: &id };
            for op in *ops {
                let decision = Decision::new(strategy, subject, *op, &[1]);
                let decision = Decision { part: has_id.then_some(&part), ..decision };
                decide_one(store, &decision).verdicts().await.unwrap();
            }
        }
        Work::Budget(..) => {}
        Work::Lease(strategy) => {
            let acquire = LeaseOp::Acquire { weight: 1, ttl: Micros::from_secs(30) };
            let release = LeaseOp::Release { outcome: WorkOutcome::Success, rtt: None };
            for op in [acquire, release] {
                let ask = LeaseAsk { strategy, subject, id: "7d3f2a10", op, deadline: None };
                leases.lease(&ask).await.unwrap();
            }
        }
    }
}

async fn on_memory(store: &MemoryStore, work: &Work) -> f64 {
    const ROUNDS: usize = 200_000;
    if let Work::Budget(budget, _) = work {
        budget.prepare(store).await;
    }
    let leases = ProcessLeases::new(store.states());
    for _ in 0..KEYS {
        once(store, &leases, work).await;
    }
    let began = Instant::now();
    for _ in 0..ROUNDS {
        once(store, &leases, work).await;
    }
    began.elapsed().as_secs_f64() * 1e9 / ROUNDS as f64
}

async fn on_redis(redis: &RedisServer, work: &Work, ready: usize) -> f64 {
    const ROUNDS: usize = 12_000;
    let store = redis_store(redis);
    if let Work::Budget(budget, _) = work {
        budget.prepare(&store).await;
    }
    let run = async |rounds: usize| {
        let tasks = (0..ready).map(|_| {
            let (store, work) = (store.clone(), work.clone());
            tokio::spawn(async move {
                for _ in 0..rounds / ready {
                    once(&store, &store, &work).await;
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    };
    run(2_000).await;
    let before = redis.cpu_seconds();
    run(ROUNDS).await;
    (redis.cpu_seconds() - before) * 1e6 / ROUNDS as f64
}

fn redis_store(redis: &RedisServer) -> RedisStore {
    let config = RedisConfig {
        nodes: vec![redis.url()],
        topology: Topology::Single,
        deadline: Micros::from_secs(60),
        connect_timeout: Micros::from_secs(60),
        // Each caller of a crowd has a place.
        max_waiting: 100_000,
        ..RedisConfig::default()
    };
    RedisShared::new(&config, KeySecret::BUILT_IN, Clock::System).store()
}
