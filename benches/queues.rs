//! The cost of Enqueue, Take and Ack of an item together, by how many callers are ready at once: through the service
//! on a Redis, beside a client of Redis that does XADD, XREADGROUP, XACK and XDEL itself, in the same turns. And the
//! same three calls on the stores alone. Items per second, µs of the Redis' own CPU per item, and µs of this process'
//! CPU; medians of turns. Then an Enqueue beside a sliding log with the same numbers. Needs `redis-server`.
//!
//! `cargo bench --bench queues`
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // measures real time

use std::sync::Arc;
use std::time::Instant;

#[path = "queues/beside_log.rs"]
mod beside_log;

use weir_config::{MemoryConfig, RedisConfig, Topology};
use weir_core::key::KeySecret;
use weir_queues::model::{
    ArchiveRule, FullQueue, ItemId, NewItem, QueueKind, QueueNumbers, QueueOp, QueueOrder, QueuePart,
    QueueReply, QueueRule,
};
use weir_queues::store::ProcessQueues;
use weir_queues::store::{QueueAsk, QueueHandle, QueueStore};
use weir_store::memory::MemoryStore;
use weir_store::redis::RedisShared;
use weir_testing::RedisServer;
use weir_testing::usage::cpu_time;
use weir_time::clock::Clock;
use weir_units::Micros;

const TURNS: usize = 5;
const READY: [usize; 3] = [1, 16, 64];
const ROUNDS: usize = 12_000;
const PAYLOAD: [u8; 100] = [b'x'; 100];

/// The client of an item.
#[derive(Clone)]
enum Way {
    /// A store of Weir.
    Weir(QueueHandle),
    /// A client of Redis, on one connection.
    Client(redis::aio::MultiplexedConnection),
}

#[derive(Clone, Copy, Default)]
struct Figures {
    per_second: f64,
    redis_us: f64,
    own_us: f64,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let redis = RedisServer::start();
    println!(
        "{:<34}{:>8}{:>12}{:>14}{:>12}",
        "an item: put, taken and acked", "ready", "items/s", "Redis CPU, µs", "own CPU, µs"
    );
    let ways = ["Weir on Redis", "a client of Redis", "Weir in memory"];
    for ready in READY {
        let mut figures = [const { Vec::new() }; 3];
        for _ in 0..TURNS {
            for (index, figures) in figures.iter_mut().enumerate() {
                redis.cli(&["FLUSHALL", "SYNC"]);
                figures.push(runtime.block_on(measure(&redis, index, ready)));
            }
        }
        for (name, figures) in ways.iter().zip(figures) {
            Figures::median(figures).print(name, ready);
        }
    }
    runtime.block_on(beside_log::compare(&redis));
}

impl Figures {
    fn median(mut turns: Vec<Self>) -> Self {
        turns.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
        turns[TURNS / 2]
    }

    fn print(self, name: &str, ready: usize) {
        let Self { per_second, redis_us, own_us } = self;
        println!("{name:<34}{ready:>8}{per_second:>12.0}{redis_us:>14.2}{own_us:>12.2}");
    }
}

/// Measures calls. Returns the cost of each.
async fn measured(redis: &RedisServer, calls: usize, run: impl Future<Output = ()>) -> Figures {
    let (redis_before, own_before, began) =
        (redis.cpu_seconds(), cpu_time(std::process::id()), Instant::now());
    run.await;
    let calls = calls as f64;
    Figures {
        per_second: calls / began.elapsed().as_secs_f64(),
        redis_us: (redis.cpu_seconds() - redis_before) * 1e6 / calls,
        own_us: (cpu_time(std::process::id()) - own_before).as_secs_f64() * 1e6 / calls,
    }
}

async fn measure(redis: &RedisServer, index: usize, ready: usize) -> Figures {
    let way = match index {
        0 => Way::Weir(QueueHandle::Scripts(Arc::new(store(redis)))),
        1 => {
            let client = redis::Client::open(redis.url()).unwrap();
            let mut connection = client.get_multiplexed_async_connection().await.unwrap();
            let mut make = redis::cmd("XGROUP");
            make.arg(&["CREATE", "queue", "g", "0", "MKSTREAM"]).exec_async(&mut connection).await.unwrap();
            Way::Client(connection)
        }
        _ => {
            let clock = MemoryStore::new(&MemoryConfig::default(), Clock::System).clock();
            Way::Weir(QueueHandle::Process(ProcessQueues::new(clock)))
        }
    };
    run(&way, 1_000, ready).await;
    measured(redis, ROUNDS, run(&way, ROUNDS, ready)).await
}

async fn run(way: &Way, rounds: usize, ready: usize) {
    let tasks = (0..ready).map(|_| {
        let way = way.clone();
        tokio::spawn(async move {
            for _ in 0..rounds / ready {
                match &way {
                    Way::Weir(store) => by_weir(store).await,
                    Way::Client(connection) => by_client(connection.clone()).await,
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

async fn by_weir(store: &QueueHandle) {
    let rule = rule();
    let ask = |op| QueueAsk { rule: &rule, part: QueuePart::Main, op, deadline: None };
    let items = [NewItem { digest: 0, id: "", payload: &PAYLOAD }];
    store.queue(&ask(QueueOp::Enqueue { items: &items })).await.unwrap();
    let taken = store.queue(&ask(QueueOp::Take { token: 0, taker: "bench", max_items: 1 })).await.unwrap();
    let QueueReply::Taken { items, .. } = taken.reply else { panic!() };
    let ids: Vec<ItemId> = items.iter().map(|item| item.id).collect();
    store.queue(&ask(QueueOp::Ack { tokens: &[], ids: &ids, outcome: "" })).await.unwrap();
}

/// Without a bound, redelivery at a time, dead letters, or totals.
async fn by_client(mut connection: redis::aio::MultiplexedConnection) {
    let added: String = redis::cmd("XADD")
        .arg("queue")
        .arg("*")
        .arg("p")
        .arg(&PAYLOAD[..])
        .query_async(&mut connection)
        .await
        .unwrap();
    assert!(!added.is_empty());
    let read = ["GROUP", "g", "c", "COUNT", "1", "STREAMS", "queue", ">"];
    let read: redis::Value = redis::cmd("XREADGROUP").arg(&read).query_async(&mut connection).await.unwrap();
    let id = id_of(&read);
    let mut ack = redis::pipe();
    ack.cmd("XACK").arg("queue").arg("g").arg(&id).cmd("XDEL").arg("queue").arg(&id);
    let _: redis::Value = ack.query_async(&mut connection).await.unwrap();
}

/// The id of the one entry of a reply: `[[stream, [[id, fields]]]]`.
fn id_of(value: &redis::Value) -> Vec<u8> {
    let part = |value: &redis::Value, index: usize| match value {
        redis::Value::Array(parts) => parts[index].clone(),
        other => panic!("{other:?}"),
    };
    match part(&part(&part(&part(value, 0), 1), 0), 0) {
        redis::Value::BulkString(id) => id,
        other => panic!("{other:?}"),
    }
}

fn rule() -> QueueRule {
    QueueRule::new("bench", numbers()).unwrap()
}

fn numbers() -> QueueNumbers {
    QueueNumbers {
        kind: QueueKind::Stream,
        capacity: 100_000,
        max_bytes: 1 << 30,
        pace: None,
        visibility: Micros::from_secs(30),
        max_deliveries: Some(5),
        outcomes: ArchiveRule::new(Micros::from_secs(60)),
        max_age: None,
        when_full: FullQueue::Refuse,
        order: QueueOrder::Fifo,
    }
}

fn store(redis: &RedisServer) -> weir_store::redis::RedisStore {
    let config = RedisConfig {
        nodes: vec![redis.url()],
        topology: Topology::Single,
        deadline: Micros::from_secs(5),
        ..RedisConfig::default()
    };
    RedisShared::new(&config, KeySecret::BUILT_IN, Clock::System).store()
}
