//! The cost of a decision inside Redis: µs of the server's own CPU, strategy by strategy and by how many decisions
//! are ready at once, beside a straightforward script of the same limit (`benches/script/`), called once a decision
//! and pipelined as much. Both by turns, the medians. Needs `redis-server`.
//!
//! The first columns are those of one connection: Redis falls asleep between its calls, and to be woken, some
//! 25 µs, is part of what a call costs. `4 x 16` is at saturation: four connections, as four workers have, with
//! 16 decisions ready on each, so that Redis is never idle (`script/saturated.rs`).
//!
//! `cargo bench --bench script`, or of some rows only: `cargo bench --bench script -- window`
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub)]
#![allow(clippy::disallowed_methods)] // reads its own arguments

use std::sync::Arc;
use weir_testing::DecideOne as _;
use weir_testing::rules::numbered;

use weir_config::{RedisConfig, Topology};
use weir_core::algorithm::{Algorithm, Op, Rate};
use weir_core::key::{KeySecret, Subject};
use weir_core::strategy::{Field, Strategy};
use weir_store::redis::{RedisShared, RedisStore};
use weir_store::{Decision, Verdicts};
use weir_testing::RedisServer;
use weir_time::clock::Clock;
use weir_units::Micros;

use saturated::{Packet, Recorder};

#[path = "script/saturated.rs"]
mod saturated;

const KEYS: usize = 6_000;
const TURNS: usize = 3;
const READY: [usize; 3] = [1, 16, 64];

/// Connections that saturate Redis, and the decisions that are ready on each.
const CONNECTIONS: usize = 4;
const READY_EACH: usize = 16;

/// Decisions of one measurement. One decision per call takes the longest, so there are fewer of them.
const fn decisions(ready: usize) -> usize {
    if ready == 1 { 12_000 } else { 24_000 }
}

fn main() {
    let redis = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("µs of Redis CPU a decision, by how many are ready: Weir's script, and a straightforward one");
    print!("{:<32}", "");
    READY.iter().for_each(|ready| print!("{ready:>10}{:>9}", ""));
    println!("{:>10}", format!("{CONNECTIONS} x {READY_EACH}"));
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| wanted.as_ref().is_none_or(|part| name.contains(part.as_str()));
    for (name, strategy, plain) in strategies().into_iter().filter(|(name, ..)| chosen(name)) {
        print!("{name:<32}");
        // Nothing of the row before is looked up among, or expires in this one.
        forget(&redis);
        for ready in READY {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..TURNS {
                ours.push(runtime.block_on(measure(&redis, &strategy, ready)));
                theirs.extend(plain.map(|plain| runtime.block_on(straightforward(&redis, plain, ready))));
            }
            print_both(ours, theirs);
        }
        let ours = runtime.block_on(calls(&redis, &strategy));
        let theirs = plain.map(|plain| plain_calls(&redis, plain));
        let (mut our_figures, mut their_figures) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            our_figures.push(saturated(&redis, &ours));
            their_figures.extend(theirs.iter().map(|theirs| saturated(&redis, theirs)));
        }
        print_both(our_figures, their_figures);
        println!();
    }
}

fn print_both(ours: Vec<f64>, theirs: Vec<f64>) {
    print!("{:>10.2}", median(ours));
    if theirs.is_empty() { print!("{:>9}", "") } else { print!("{:>9.2}", median(theirs)) }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// A script that decides one limit, and its arguments after the key.
#[derive(Clone, Copy)]
struct Plain(&'static str, &'static [&'static str]);

fn strategies() -> Vec<(&'static str, Arc<Strategy>, Option<Plain>)> {
    let rate = Rate { count: 1_000_000, period: Micros::from_secs(1) };
    let bucket = Algorithm::bucket(1_000_000, rate).unwrap();
    let gate = Algorithm::uniform(Micros::from_secs(3600)).unwrap();
    let window = Algorithm::fixed_window(1 << 40, Micros::from_secs(60), false, false).unwrap();
    let sliding = Algorithm::sliding_window(1_000_000, Micros::from_secs(60)).unwrap();
    let slots = Algorithm::bucketed_window(1_000_000, Micros::from_secs(60), 60, true).unwrap();
    // Slots of 1 ms, so that many of them are hit.
    let sparse = Algorithm::bucketed_window(1_000_000, Micros::from_millis(3600), 3600, true).unwrap();
    let interval = Algorithm::interval_refill(1 << 30, 1_000, Micros::from_secs(1), false).unwrap();
    let log = Algorithm::sliding_log(100, Micros::from_millis(100)).unwrap();
    let login = Algorithm::strict_log(10, Micros::from_secs(3600), true, Micros(1)).unwrap();
    let windows = [1, 60, 3600, 86_400]
        .map(|span| Algorithm::fixed_window(1 << 40, Micros::from_secs(span), false, false).unwrap());
    let eight = [windows, [bucket; 4]].concat();
    let gcra = include_str!("script/gcra.lua");
    let two = Plain(include_str!("script/two.lua"), &["1", "1000000", "60000000", "1000000000"]);
    vec![
        ("token_bucket, allowed", strategy(&[bucket]), Some(Plain(gcra, &["1", "1000000"]))),
        ("uniform, denied", strategy(&[gate]), Some(Plain(gcra, &["3600000000", "0"]))),
        (
            "fixed_window, allowed",
            strategy(&[window]),
            Some(Plain(include_str!("script/window.lua"), &["60000000", "1000000000"])),
        ),
        (
            "sliding_window, allowed",
            strategy(&[sliding]),
            Some(Plain(include_str!("script/sliding.lua"), &["60000000", "1000000"])),
        ),
        (
            "sliding_log of 100",
            strategy(&[log]),
            Some(Plain(include_str!("script/log.lua"), &["100000", "100"])),
        ),
        ("sliding_log, denied counted", strategy(&[login]), None),
        ("bucketed_window of 60", strategy(&[slots]), None),
        ("bucketed_window of 3,600", strategy(&[sparse]), None),
        ("interval_refill, allowed", strategy(&[interval]), None),
        ("two limits: bucket and window", strategy(&[bucket, window]), Some(two)),
        ("three: and sliding_window", strategy(&[bucket, window, sliding]), None),
        ("four: second, minute, hour, day", strategy(&windows), None),
        ("eight: four windows and buckets", strategy(&eight), None),
    ]
}

fn strategy(algorithms: &[Algorithm]) -> Arc<Strategy> {
    numbered("bench", &[Field::Resource, Field::Consumer], algorithms)
}

/// Keeps `ready` decisions in flight, so that about as many leave together.
async fn measure(redis: &RedisServer, strategy: &Arc<Strategy>, ready: usize) -> f64 {
    let store = store(redis.port());
    run(&store, strategy, ready, 2_000).await;
    let before = redis.cpu_seconds();
    run(&store, strategy, ready, decisions(ready)).await;
    (redis.cpu_seconds() - before) * 1e6 / decisions(ready) as f64
}

fn store(port: u16) -> Arc<RedisStore> {
    let config = RedisConfig {
        nodes: vec![format!("redis://127.0.0.1:{port}")],
        topology: Topology::Single,
        deadline: Micros::from_secs(5),
        ..RedisConfig::default()
    };
    Arc::new(RedisShared::new(&config, KeySecret::BUILT_IN, Clock::System).store())
}

/// The calls that a store makes of decisions for all keys.
async fn calls(redis: &RedisServer, strategy: &Arc<Strategy>) -> Vec<Packet> {
    let recorder = Recorder::before(redis.port());
    let store = store(recorder.port);
    run(&store, strategy, READY_EACH, 2_000).await;
    recorder.take();
    run(&store, strategy, READY_EACH, KEYS).await;
    recorder.take()
}

/// Returns the cost of a decision at saturation, in µs.
fn saturated(redis: &RedisServer, packets: &[Packet]) -> f64 {
    const ROUNDS: usize = 4;
    let before = redis.cpu_seconds();
    (0..ROUNDS).for_each(|_| saturated::send(redis.port(), CONNECTIONS, packets));
    (redis.cpu_seconds() - before) * 1e6 / (KEYS * ROUNDS) as f64
}

/// The same decisions by a script of one limit, `ready` of them in every packet.
async fn straightforward(redis: &RedisServer, plain: Plain, ready: usize) -> f64 {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let sha = plain.load(redis);
    let mut numbers = (0..).map(|number| number * 7919 % KEYS);
    let mut decide = async |decisions: usize| {
        for _ in 0..decisions / ready {
            let packet = plain.packet(&sha, numbers.by_ref().take(ready));
            let _: Vec<redis::Value> = packet.query_async(&mut connection).await.unwrap();
        }
    };
    decide(2_000).await;
    let before = redis.cpu_seconds();
    decide(decisions(ready)).await;
    (redis.cpu_seconds() - before) * 1e6 / decisions(ready) as f64
}

fn plain_calls(redis: &RedisServer, plain: Plain) -> Vec<Packet> {
    let sha = plain.load(redis);
    let packet = |first: usize| {
        let numbers = (first..first + READY_EACH).map(|number| number * 7919 % KEYS);
        Packet { bytes: plain.packet(&sha, numbers).get_packed_pipeline(), answers: READY_EACH }
    };
    (0..KEYS).step_by(READY_EACH).map(packet).collect()
}

impl Plain {
    fn load(self, redis: &RedisServer) -> String {
        redis.query(&["SCRIPT", "LOAD", self.0])
    }

    fn packet(self, sha: &str, numbers: impl Iterator<Item = usize>) -> redis::Pipeline {
        let mut packet = redis::pipe();
        for number in numbers {
            let user = format!("{sha}:{{api:user_{number}}}");
            packet.cmd("EVALSHA").arg(sha).arg(2).arg(&user).arg(format!("{user}:2")).arg(self.1);
        }
        packet
    }
}

async fn run(store: &Arc<RedisStore>, strategy: &Arc<Strategy>, ready: usize, decisions: usize) {
    let tasks: Vec<_> = (0..ready)
        .map(|task| {
            let (store, strategy) = (Arc::clone(store), Arc::clone(strategy));
            tokio::spawn(async move {
                for round in 0..decisions / ready {
                    let consumer = format!("user_{}", (round * ready + task) * 7919 % KEYS);
                    let subject = Subject { resource: "api", consumer: &consumer, ..Subject::default() };
                    let decision = Decision::new(&strategy, subject, Op::Peek, &[]);
                    let mut out = Verdicts::default();
                    store.decide_one(&decision, Op::Charge, &[1], &mut out).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

fn forget(redis: &RedisServer) {
    redis.cli(&["FLUSHALL", "SYNC"]);
}
