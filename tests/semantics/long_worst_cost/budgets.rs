//! Rows of limits with costs of their own: as many ends as one limit may have, and the usual number of them.

use std::sync::Arc;

use weir_core::algorithm::budget::{
    Ask, AskedCost, BudgetLimit, CostedLimits, HoldBounds, LimitCost, SettledCosts,
};
use weir_core::algorithm::{Algorithm, MAX_ENTRIES, Rate};
use weir_core::strategy::Strategy;
use weir_store::{BudgetDecision, BudgetOp, Store as _};

use super::*;

/// The number of ends, and of limits that have them.
const STATES: [(u64, usize); 2] = [(18, 4), (64, 8)];

/// A cost that is denied while most of it is used and the rest is held.
const MOST: u64 = 9_900;

/// Limits of a decision, and the call that is timed.
struct BudgetRow {
    rules: Arc<Strategy>,
    algorithms: Vec<Algorithm>,
    ends: u64,
    /// Charges of 1 before.
    charges: u64,
}

#[tokio::test]
async fn of_budgets() {
    let redis = RedisServer::start();
    let clock = ManualClock::at(Micros(START));
    let store = redis_store(vec![redis.url()], Topology::Single, Clock::Manual(clock.clone())).await;
    let world = World { redis, clock, store };
    println!("| limits and ends | call | least | median |\n|---|---|---|---|");
    for (name, algorithm, charges) in algorithms() {
        for (ends, limits) in STATES {
            let algorithms = vec![algorithm; limits];
            let row = BudgetRow { rules: strategy(&algorithms), algorithms, ends, charges };
            for (call, cost, kind) in [
                ("admitted", 1, "ask"),
                ("denied", MOST, "ask"),
                ("hold", 1, "hold"),
                ("settled", 1, "settle"),
            ] {
                world.prepare(&row).await;
                let (least, median) = world.time(&row, cost, kind).await;
                println!("| {limits} times {name}, {ends} ends | {call} | {least} | {median} |");
            }
        }
    }
}

fn algorithms() -> [(&'static str, Algorithm, u64); 3] {
    let hour = Micros::from_secs(3600);
    [
        ("fixed_window", Algorithm::fixed_window(MAX_ENTRIES, hour, true, false).unwrap(), 1),
        ("token_bucket", Algorithm::bucket(MAX_ENTRIES, Rate { count: 1, period: hour }).unwrap(), 1),
        ("sliding_log of 9,000 entries", Algorithm::sliding_log(MAX_ENTRIES, hour).unwrap(), 9_000),
    ]
}

impl BudgetRow {
    /// The limits under `max`. Holds of another one end at other times.
    fn costed(&self, max: u64) -> Arc<CostedLimits> {
        let limit = |algorithm: &Algorithm| BudgetLimit {
            algorithm: *algorithm,
            cost: LimitCost::Named(0),
            at_once: false,
            near_percent: Some(80),
        };
        Arc::new(CostedLimits {
            limits: self.algorithms.iter().map(limit).collect(),
            names: vec!["n".into()],
            hold: Some(HoldBounds { max: Micros(max), known_for: Micros::from_secs(60) }),
        })
    }
}

impl World {
    /// Makes the state: a charge, and holds with different ends. The first of them is `settled`.
    async fn prepare(&self, row: &BudgetRow) {
        self.redis.flush_all();
        self.clock.set(Micros(START));
        for number in 0..row.ends {
            let max = 16 * (10_000_000 + 1_000_003 * number);
            let asked = asked(1, Some(Micros(max)));
            let id = if number == row.ends / 2 { "settled".to_owned() } else { format!("hold {number}") };
            self.decide_costs(row, &row.costed(max), BudgetOp::Ask(&asked), &id).await;
        }
        let (plain, costed) = (asked(1, None), row.costed(16_000_000));
        for number in 0..row.charges {
            self.clock.set(Micros(START + number));
            self.decide_costs(row, &costed, BudgetOp::Ask(&plain), "").await;
        }
        let used = SettledCosts { costs: [Some(9_000 - row.charges)].into_iter().collect(), cost: None };
        self.decide_costs(row, &costed, BudgetOp::Debit(&used), "").await;
    }

    /// Least and median of a call, in µs.
    async fn time(&self, row: &BudgetRow, cost: u64, kind: &str) -> (u64, u64) {
        let keys = self.redis.state_keys();
        keys.iter().for_each(|key| self.copy(key, &kept(key)));
        let costed = row.costed(160_000_000);
        let mut times = Vec::new();
        for _ in 0..CALLS {
            keys.iter().for_each(|key| self.copy(&kept(key), key));
            self.redis.cli(&["CONFIG", "RESETSTAT"]);
            let used = SettledCosts { costs: [Some(cost)].into_iter().collect(), cost: None };
            // An end that is there already, so that there are no more of them.
            let hold = asked(cost, Some(Micros(159_000_000)));
            let plain = asked(cost, None);
            let (op, id) = match kind {
                "ask" => (BudgetOp::Ask(&plain), ""),
                "hold" => (BudgetOp::Ask(&hold), "timed"),
                _ => (BudgetOp::Settle(&used), "settled"),
            };
            self.decide_costs(row, &costed, op, id).await;
            times.push(self.script_time("evalsha"));
            let is_new = |key: &&String| !keys.contains(key) && !key.starts_with("kept:");
            for key in self.redis.state_keys().iter().filter(is_new) {
                self.redis.cli(&["DEL", key]);
            }
        }
        times.sort_unstable();
        (times[0], times[CALLS / 2])
    }

    async fn decide_costs(&self, row: &BudgetRow, costed: &Arc<CostedLimits>, op: BudgetOp<'_>, id: &str) {
        let subject = Subject { resource: "worst", consumer: "bob", ..Subject::default() };
        let strategy = &row.rules;
        let decision = BudgetDecision { strategy, costed, subject, op, id, deadline: None, caller: 0 };
        self.store.decide_costs(&decision).verdicts().await.unwrap();
    }
}

fn asked(units: u64, hold_for: Option<Micros>) -> Ask {
    let costs = [AskedCost { cost: units, at_least: None }].into_iter().collect();
    Ask { costs, cost: 1, peek: false, has_id: hold_for.is_some(), hold_for }
}
