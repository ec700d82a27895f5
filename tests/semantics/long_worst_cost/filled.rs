//! Script calls that are filled with what costs most: a call has a bound of time, however many decisions are ready.

use std::sync::Arc;

use weir_config::{RedisConfig, Topology};
use weir_core::algorithm::{Algorithm, MAX_ENTRIES, MAX_LIMITS, Op};
use weir_core::key::{KeySecret, Subject};
use weir_core::strategy::Strategy;
use weir_store::redis::RedisShared;
use weir_store::{Decision, decide_one};
use weir_testing::{RedisServer, redis_config, watched};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::{START, World, YARDSTICK_TIME, strategy};

/// Upper bound of a script call, in µs, on a machine that needs `YARDSTICK_TIME` for the yardstick.
const CALL_MOST: u64 = 5_000;
/// Floods of each kind, which are filled alike. Of the calls at one place of them the shortest counts: a busy machine stops
/// Redis within calls, for 4 ms or more.
const FLOODS: u32 = 5;
/// An entry of Redis's slow log: number, time, µs, command with arguments, client, its name.
type SlowCall = (i64, i64, u64, Vec<Vec<u8>>, String, String);

const HOUR: Micros = Micros::from_secs(3600);

#[tokio::test]
async fn no_call_is_filled_beyond_its_time() {
    let redis = RedisServer::start();
    let clock = ManualClock::at(Micros(START));
    let config = RedisConfig {
        deadline: Micros::from_secs(30),
        max_waiting: 10_000,
        ..redis_config(vec![redis.url()], Topology::Single)
    };
    let shared = RedisShared::new(&config, KeySecret::BUILT_IN, Clock::Manual(clock.clone()));
    let store = watched(&shared).await;
    let world = World { redis, clock, store };
    let log = Algorithm::sliding_log(MAX_ENTRIES, HOUR).unwrap();
    let kinds = [
        (
            "1,000 first calls of bucketed windows of 3,600",
            Algorithm::bucketed_window(100, HOUR, 3600, true).unwrap(),
            1,
            1_000,
            Op::Charge,
            false,
        ),
        (
            "1,000 first reserves of held logs",
            Algorithm::held_log(MAX_ENTRIES, HOUR, 1_000).unwrap(),
            1,
            1_000,
            Op::Reserve { max_wait: HOUR },
            false,
        ),
        ("125 decisions of eight full logs", log, MAX_LIMITS, 125, Op::Charge, true),
    ];
    println!("| flood | calls of 0.5 ms or more | median, µs | longest, µs |\n|---|---|---|---|");
    let mut slow = Vec::new();
    for (name, limit, limits, decisions, op, is_full) in kinds {
        let rules = strategy(&vec![limit; limits]);
        let mut least: Vec<u64> = Vec::new();
        for flood in 0..FLOODS {
            // Full logs deny, and stay as they are.
            if flood == 0 || !is_full {
                world.redis.flush_all();
            }
            if flood == 0 && is_full {
                world.fill(&rules, decisions).await;
            }
            let times = world.flood(name, &rules, decisions, op).await;
            if flood == 0 {
                least = times;
            } else {
                let shorter = |(place, time): (usize, u64)| time.min(times.get(place).copied().unwrap_or(0));
                least = least.into_iter().enumerate().map(shorter).collect();
            }
        }
        let least = least.into_iter().max().unwrap_or_default();
        let most = CALL_MOST * world.yardstick().max(YARDSTICK_TIME) / YARDSTICK_TIME;
        if least > most {
            slow.push(format!("{name}: {least} µs of {most}"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

impl World {
    /// Fills the logs of all consumers.
    async fn fill(&self, rules: &Arc<Strategy>, consumers: usize) {
        self.clock.set(Micros(START));
        let first = subject("c0");
        for _ in 0..MAX_ENTRIES {
            self.decide(rules, first, 1_000, Op::Charge, 1).await;
        }
        let full = self.redis.state_keys().remove(0);
        for consumer in 1..consumers {
            self.decide(rules, subject(&format!("c{consumer}")), 0, Op::Charge, 1).await;
        }
        // All logs are alike, so one stands for all.
        let others = self.redis.state_keys();
        others.iter().filter(|key| **key != full).for_each(|key| self.copy(&full, key));
    }

    /// Asks for all decisions at once. Returns the times of its script calls of 0.5 ms or more, in µs and in their order.
    async fn flood(&self, name: &str, rules: &Arc<Strategy>, decisions: usize, op: Op) -> Vec<u64> {
        self.redis.cli(&["CONFIG", "SET", "slowlog-log-slower-than", "500"]);
        self.redis.cli(&["CONFIG", "SET", "slowlog-max-len", "10000"]);
        self.redis.cli(&["SLOWLOG", "RESET"]);
        self.redis.cli(&["CONFIG", "RESETSTAT"]);
        let cost = if op == Op::Charge && rules.limits().len() > 1 { 5_000 } else { 1 };
        let ask = |number: usize| {
            let consumer = format!("c{number}");
            let answer = decide_one(&self.store, &Decision::new(rules, subject(&consumer), op, &[cost]));
            async move { answer.verdicts().await.map(drop) }
        };
        let answers = futures_util::future::join_all((0..decisions).map(ask)).await;
        let failed = answers.iter().filter(|answer| answer.is_err()).count();
        assert_eq!(failed, 0, "{name}: {:?}", answers.iter().find(|answer| answer.is_err()));
        let mut slow: Vec<SlowCall> = self.redis.query(&["SLOWLOG", "GET", "-1"]);
        slow.sort_unstable_by_key(|call| call.0);
        let calls = slow.iter().filter(|call| call.3.first().is_some_and(|name| name.starts_with(b"EVAL")));
        let times: Vec<u64> = calls.map(|call| call.2).collect();
        let mut sorted = times.clone();
        sorted.sort_unstable();
        let (median, longest) = (sorted.get(sorted.len() / 2).copied(), sorted.last().copied());
        let (median, longest) = (median.unwrap_or_default(), longest.unwrap_or_default());
        println!("| {name} | {} | {median} | {longest} |", times.len());
        times
    }
}

fn subject(consumer: &str) -> Subject<'_> {
    Subject { resource: "worst", consumer, ..Subject::default() }
}
