//! Token budgets: four limits, of which three are held; a charge with an id, a hold, a hold with its settlement, by how many ends
//! of holds each key has. And bytes of open holds, and 10,000 callers of one key.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use weir_config::MemoryConfig;
use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, CostedLimits, HoldBounds, LimitCost, SettledCosts,
};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_store::memory::MemoryStore;
use weir_store::{BudgetDecision, BudgetOp, Store};
use weir_testing::RedisServer;
use weir_time::clock::Clock;
use weir_units::Micros;

use super::{NEXT, redis_store};

/// `max` of the strategy; holds end at multiples of a sixteenth of it.
const MAX: Micros = Micros::from_secs(3_200);
const GRAIN: Micros = Micros::from_secs(200);

/// Open holds whose bytes are counted.
const OPEN: usize = 1_000_000;

/// Callers at once.
const CROWD: usize = 10_000;

/// The calls that are made with each id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetWork {
    /// Costs by name, without an id.
    Plain,
    /// The same with `at_least`, which the short path does not decide.
    AtLeast,
    /// A charge with an id.
    Charge,
    Hold,
    HoldAndSettle,
}

/// Limits with costs of their own, and the ends that holds of one key have.
#[derive(Clone)]
pub struct Budget {
    strategy: Arc<Strategy>,
    costed: Arc<CostedLimits>,
    pub ends: usize,
    pub keys: usize,
}

/// The limits of the rows: calls, input and output tokens a minute, money a month.
pub fn algorithms() -> [Algorithm; 4] {
    let minute = Micros::from_secs(60);
    let day = Micros::from_secs(86_400);
    // Anchored: no window ends before the holds in it.
    let window = |limit, span| Algorithm::fixed_window(limit, span, true, false).unwrap();
    let bucket = Algorithm::bucket(1 << 40, Rate { count: 1_000_000, period: minute }).unwrap();
    [window(1 << 40, minute), bucket, window(1 << 40, day), window(1 << 50, day)]
}

pub fn limits(algorithms: &[Algorithm]) -> Vec<Limit> {
    let names = ["rpm", "input", "output", "budget"].into_iter().zip(algorithms);
    let scope = Scope::new(&[Field::Resource, Field::Consumer]);
    names
        .map(|(name, algorithm)| Limit { name: name.into(), scope: scope.clone(), algorithm: *algorithm })
        .collect()
}

impl Budget {
    /// The first limit has the fixed cost 1, and each other one a cost of its own.
    pub fn new(ends: usize, keys: usize) -> Self {
        let algorithms = algorithms();
        let strategy = Strategy::new("budget", limits(&algorithms), false, FailurePolicy::Error).unwrap();
        let costs = algorithms.iter().enumerate().map(|(index, algorithm)| BudgetLimit {
            algorithm: *algorithm,
            cost: if index == 0 { LimitCost::Fixed(1) } else { LimitCost::Named(index - 1) },
            at_once: false,
            near_percent: None,
        });
        let hold = Some(HoldBounds { max: MAX, known_for: Micros::from_secs(3_600) });
        let names = ["input", "output", "usd"].map(Into::into).to_vec();
        let costed = CostedLimits { limits: costs.collect(), names, hold };
        Self { strategy: Arc::new(strategy), costed: Arc::new(costed), ends, keys }
    }

    /// The same limits without holds.
    pub fn without_holds(keys: usize) -> Self {
        let budget = Self::new(1, keys);
        let costed = CostedLimits { hold: None, ..CostedLimits::clone(&budget.costed) };
        Self { costed: Arc::new(costed), ..budget }
    }

    /// Makes each key's ends: one hold for each.
    pub async fn prepare(&self, store: &impl Store) {
        if self.costed.hold.is_none() {
            return;
        }
        for number in 0..self.ends * self.keys {
            self.once(store, BudgetWork::Hold, number, number / self.keys).await;
        }
    }

    /// The next call, of the key and the end whose turn it is.
    pub async fn next(&self, store: &impl Store, work: BudgetWork) {
        let number = NEXT.fetch_add(1, Relaxed);
        self.once(store, work, number, number / self.keys).await;
    }

    async fn once(&self, store: &impl Store, work: BudgetWork, number: usize, end: usize) {
        let consumer = format!("user_{}", number * 7919 % self.keys);
        let has_id = !matches!(work, BudgetWork::Plain | BudgetWork::AtLeast);
        let id = if has_id { format!("{}-{number}", NEXT.fetch_add(1, Relaxed)) } else { String::new() };
        let hold_for = Micros((1 + (end % self.ends) as u64) * GRAIN.0 - 1_000_000);
        let at_least = (work == BudgetWork::AtLeast).then_some(1);
        let cost = |cost| AskedCost { cost, at_least };
        let holds = matches!(work, BudgetWork::Hold | BudgetWork::HoldAndSettle);
        let asked = Ask {
            costs: [cost(900), cost(4_096), cost(70_000)].into_iter().collect(),
            cost: 1,
            peek: false,
            has_id,
            hold_for: holds.then_some(hold_for),
        };
        self.decide(store, &consumer, &id, BudgetOp::Ask(&asked)).await;
        if work == BudgetWork::HoldAndSettle {
            let costs = [Some(900), Some(731), Some(12_400)].into_iter().collect();
            let used = SettledCosts { costs, cost: None };
            self.decide(store, &consumer, &id, BudgetOp::Settle(&used)).await;
        }
    }

    async fn decide(&self, store: &impl Store, consumer: &str, id: &str, op: BudgetOp<'_>) {
        let subject = Subject { resource: "api", consumer, ..Subject::default() };
        let Self { strategy, costed, .. } = self;
        let decision = BudgetDecision { strategy, costed, subject, op, id, deadline: None, caller: 0 };
        store.decide_costs(&decision).verdicts().await.unwrap();
    }
}

/// Bytes of an open hold: its record, and its share of the parts of its key.
pub async fn bytes_of_open_holds(redis: &RedisServer) {
    let budget = Budget::new(16, 6_000);
    let memory = MemoryStore::new(&roomy(), Clock::System);
    for _ in 0..OPEN {
        budget.next(&memory, BudgetWork::Hold).await;
    }
    println!(
        "{OPEN} open holds of {} keys: {} bytes a hold in memory",
        budget.keys,
        memory.stats().bytes / OPEN
    );
    redis.cli(&["FLUSHALL", "SYNC"]);
    let before = used_memory(redis);
    crowd(redis, OPEN, 64, &budget, BudgetWork::Hold).await;
    let open = (used_memory(redis) - before) / OPEN as f64;
    println!("{OPEN} open holds of {} keys: {open:.0} bytes a hold on Redis", budget.keys);
}

/// Callers of one key at once: the time until all are answered, and the settlements of all.
pub async fn one_key(redis: &RedisServer) {
    for (name, work) in
        [("charge with an id", BudgetWork::Charge), ("hold and Settle", BudgetWork::HoldAndSettle)]
    {
        let budget = Budget::new(16, 1);
        let memory = MemoryStore::new(&roomy(), Clock::System);
        let began = Instant::now();
        for _ in 0..CROWD {
            budget.next(&memory, work).await;
        }
        let took = began.elapsed().as_secs_f64() * 1e3;
        redis.cli(&["FLUSHALL", "SYNC"]);
        let began = Instant::now();
        crowd(redis, CROWD, CROWD, &budget, work).await;
        let on_redis = began.elapsed().as_secs_f64() * 1e3;
        println!("{CROWD} callers of one key, {name}: {took:.1} ms in memory, {on_redis:.0} ms on Redis");
    }
}

/// Makes `calls` calls by so many callers at once.
async fn crowd(redis: &RedisServer, calls: usize, callers: usize, budget: &Budget, work: BudgetWork) {
    let store = redis_store(redis);
    let callers = (0..callers).map(|_| {
        let (store, budget) = (store.clone(), budget.clone());
        tokio::spawn(async move {
            for _ in 0..calls / callers {
                budget.next(&store, work).await;
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

/// Room for all ids.
pub fn roomy() -> MemoryConfig {
    MemoryConfig { budget: 8 << 30, id_share: Some(4 << 30), ..MemoryConfig::default() }
}

fn used_memory(redis: &RedisServer) -> f64 {
    let info: String = redis.query(&["INFO", "memory"]);
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("INFO memory says it");
    line.trim().parse().expect("a number")
}
