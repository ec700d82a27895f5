//! The memory of a key, in the memory store and in Redis.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use weir_testing::DecideOne as _;

use weir_config::{MemoryConfig, Topology, WhenFull};
use weir_core::algorithm::Op;
use weir_core::key::{KeySecret, Namespace, Subject, write_key, write_tag};
use weir_core::strategy::Strategy;
use weir_store::memory::MemoryStore;
use weir_store::{Decision, Verdicts};
use weir_time::clock::{Clock, ManualClock};
use weir_units::Micros;

use super::{TEXT, strategy};
use crate::support;

const START: u64 = 1_704_067_200_000_000;

/// A row of the table: `| what | algorithm, calls | memory store | Redis |`.
struct Row {
    what: String,
    rules: Arc<Strategy>,
    /// Calls, and how far apart.
    calls: u64,
    apart: u64,
    memory: f64,
    redis: f64,
}

/// Other allocators and other versions of Redis round otherwise, by no more than this.
const TOLERANCE: f64 = 0.2;

#[tokio::test]
async fn the_table_says_what_a_key_takes() {
    let rows: Vec<Row> = rows();
    assert_eq!(rows.len(), 9);
    let mut wrong = Vec::new();
    for row in &rows {
        let measured = [("memory", row.memory, in_memory(row)), ("Redis", row.redis, in_redis(row).await)];
        for (store, documented, actual) in measured {
            println!("{}: {actual:.0} bytes in {store}", row.what);
            if (actual - documented).abs() > TOLERANCE * actual {
                wrong.push(format!("{}: {actual:.0} bytes in {store}, not {documented}", row.what));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn rows() -> Vec<Row> {
    let (_, table) = TEXT.split_once("\n| state |").expect("the table is there");
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    lines.map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [what, algorithm, calls, memory, redis] = cells[..] else { panic!("five cells: {line}") };
    let (calls, apart) = calls.split_once(", one each ").unwrap_or((calls, "0 ms"));
    let number = |text: &str| -> u64 { text.trim_end_matches(" ms").replace(',', "").parse().unwrap() };
    Row {
        what: what.to_owned(),
        rules: strategy(algorithm.trim_matches('`')),
        calls: number(calls),
        apart: 1000 * number(apart),
        memory: number(memory) as f64,
        redis: number(redis) as f64,
    }
}

/// Bytes a key, of many, so that what all share weighs nothing.
fn in_memory(row: &Row) -> f64 {
    const KEYS: u64 = 150_000;
    let keys = if row.calls > 1 { KEYS / 20 } else { KEYS };
    let clock = ManualClock::at(Micros(START));
    let config = MemoryConfig { budget: 1 << 30, when_full: WhenFull::Refuse, share: None, id_share: None };
    let store = MemoryStore::new(&config, Clock::Manual(clock.clone()));
    for call in 0..row.calls {
        clock.set(Micros(START + call * row.apart));
        for key in 0..keys {
            let consumer = format!("customer-{key:010}");
            let decision = decision(row, &consumer);
            let mut out = Verdicts::default();
            let decided = pin!(store.decide_one(&decision, Op::Charge, &[1], &mut out));
            let Poll::Ready(Ok(())) = decided.poll(&mut Context::from_waker(Waker::noop())) else {
                panic!("the memory store answers at once")
            };
        }
    }
    assert_eq!(store.stats().keys as u64, keys);
    store.stats().bytes as f64 / keys as f64
}

/// Returns the `MEMORY USAGE` of the one key.
async fn in_redis(row: &Row) -> f64 {
    let redis = support::shared_redis();
    let clock = ManualClock::at(Micros(START));
    let store = support::redis_store(vec![redis.url()], Topology::Single, Clock::Manual(clock.clone())).await;
    let decision = decision(row, "customer-0000000001");
    for op in std::iter::once(Op::Reset).chain((0..row.calls).map(|_| Op::Charge)) {
        store.decide_one(&decision, op, &[1], &mut Verdicts::default()).await.unwrap();
        clock.set(Micros(clock.now().0 + row.apart));
    }
    let (mut tag, mut key) = (Vec::new(), Vec::new());
    write_tag(&mut tag, &row.rules, &decision.subject);
    let tag = KeySecret::BUILT_IN.hash(&tag);
    write_key(
        &mut key,
        Namespace::DEFAULT.prefix(tag),
        &row.rules,
        &row.rules.limits()[0],
        &decision.subject,
    );
    let key = String::from_utf8(key).unwrap();
    redis.query::<Option<u32>>(&["MEMORY", "USAGE", &key, "SAMPLES", "0"]).expect("the key is there").into()
}

fn decision<'a>(row: &'a Row, consumer: &'a str) -> Decision<'a> {
    let subject = Subject { resource: "shop.example/v1/orders", consumer, ..Subject::default() };
    Decision::new(&row.rules, subject, Op::Peek, &[])
}
