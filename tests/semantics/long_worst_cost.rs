//! The worst cost of one decision in Redis, by engine: the table of docs/algorithms.md. Each state is made as bad as the
//! bounds of the configuration allow, and each call starts from the same state.
//!
//! `cargo test --profile tests --workspace --test semantics -- --nocapture long_worst_cost::` prints the table. The time is
//! that of the script inside Redis (`usec` of `INFO commandstats`): the least of several calls, which is what a call costs
//! when nothing else runs, and the median.

mod budgets;
mod filled;
mod rows;

use std::sync::Arc;
use weir_testing::rules::numbered;

use weir_config::Topology;
use weir_core::algorithm::{Algorithm, Op};
use weir_core::key::Subject;
use weir_core::strategy::{Field, Strategy};
use weir_store::redis::RedisStore;
use weir_store::{Decision, Verdicts};
use weir_testing::{DecideOne as _, RedisServer};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use self::rows::{Row, rows};
use crate::support::redis_store;

const START: u64 = 1_700_000_000_000_000;
const CALLS: usize = 31;
/// Upper bound of a call about a held log, in µs, on a machine that needs `YARDSTICK_TIME` for the yardstick.
const HELD_MOST: u64 = 200;
/// Fixed work of the kind that the scripts do: commands, packed numbers, a table.
const YARDSTICK: &str = "
local seen = {}
for i = 1, 100 do
  redis.call('SET', KEYS[1], struct.pack('>ddd', i, i + 1, i + 2))
  local a, b, c = struct.unpack('>ddd', redis.call('GET', KEYS[1]))
  seen[i] = a + b + c
end
return #seen";
/// The time of the yardstick on the machine where the bound was measured, in µs.
const YARDSTICK_TIME: u64 = 110;

#[tokio::test]
async fn of_each_engine() {
    let redis = RedisServer::start();
    let clock = ManualClock::at(Micros(START));
    let store = redis_store(vec![redis.url()], Topology::Single, Clock::Manual(clock.clone())).await;
    let world = World { redis, clock, store };
    println!("| limit and state | call | least | median |\n|---|---|---|---|");
    let mut slow = Vec::new();
    for (number, row) in rows().iter().enumerate() {
        let (cost, median) = world.worst(row, number).await;
        println!("| {} | {} | {cost} | {median} |", row.state, row.call);
        if row.is_bounded {
            let most = HELD_MOST * world.yardstick().max(YARDSTICK_TIME) / YARDSTICK_TIME;
            if cost >= most {
                slow.push(format!("{}, {}: {cost} µs of {most}", row.state, row.call));
            }
        }
    }
    println!("The yardstick takes {} µs; {YARDSTICK_TIME} where the bound was measured.", world.yardstick());
    assert!(slow.is_empty(), "{HELD_MOST} µs or more on the machine of the bound: {slow:?}");
}

struct World {
    redis: RedisServer,
    clock: ManualClock,
    store: RedisStore,
}

impl World {
    /// Least and median of a row's call, in µs.
    async fn worst(&self, row: &Row, number: usize) -> (u64, u64) {
        self.redis.flush_all();
        self.clock.set(Micros(START));
        let rules = strategy(&row.limits);
        let consumer = format!("row {number}");
        let subject = Subject { resource: "worst", consumer: &consumer, ..Subject::default() };
        for &(pause, op, cost) in &row.before {
            self.decide(&rules, subject, pause, op, cost).await;
        }
        let keys = self.redis.state_keys();
        keys.iter().for_each(|key| self.copy(key, &kept(key)));
        self.clock.set(Micros((self.clock.now().0 + row.pause).saturating_sub(row.back)));
        let mut times = Vec::new();
        for _ in 0..CALLS {
            keys.iter().for_each(|key| self.copy(&kept(key), key));
            self.redis.cli(&["CONFIG", "RESETSTAT"]);
            self.decide(&rules, subject, 0, row.op, row.cost).await;
            times.push(self.script_time("evalsha"));
        }
        times.sort_unstable();
        (times[0], times[CALLS / 2])
    }

    /// Least time of the yardstick, in µs: a machine that is slower by half has a bound that is higher by half.
    fn yardstick(&self) -> u64 {
        let time = |_| {
            self.redis.cli(&["CONFIG", "RESETSTAT"]);
            self.redis.cli(&["EVAL", YARDSTICK, "1", "yardstick"]);
            self.script_time("eval")
        };
        (0..CALLS).map(time).min().unwrap()
    }

    async fn decide(&self, rules: &Arc<Strategy>, subject: Subject<'_>, pause: u64, op: Op, cost: u64) {
        self.clock.set(Micros(self.clock.now().0 + pause));
        let decision = Decision::new(rules, subject, Op::Peek, &[]);
        self.store.decide_one(&decision, op, &[cost], &mut Verdicts::default()).await.unwrap();
    }

    fn copy(&self, from: &str, to: &str) {
        self.redis.cli(&["COPY", from, to, "REPLACE"]);
    }

    /// Time of the scripts since the last reset that `command` ran, in µs.
    fn script_time(&self, command: &str) -> u64 {
        let stats: String = self.redis.query(&["INFO", "commandstats"]);
        let start = format!("cmdstat_{command}:");
        let line = stats.lines().find(|line| line.starts_with(&start)).unwrap();
        let usec = line.split("usec=").nth(1).unwrap();
        usec.split(',').next().unwrap().parse().unwrap()
    }
}

fn kept(key: &str) -> String {
    format!("kept:{key}")
}

fn strategy(limits: &[Algorithm]) -> Arc<Strategy> {
    numbered("worst", &[Field::Resource, Field::Consumer], limits)
}
