//! The cost of an Enqueue beside a decision of a sliding log with the same numbers: both are allowed up to so many,
//! and both keep an entry for each.

use std::sync::Arc;

use weir_core::algorithm::{Algorithm, Op};
use weir_core::key::Subject;
use weir_core::strategy::{FailurePolicy, Field, Limit, Scope, Strategy};
use weir_queues::model::{NewItem, QueueNumbers, QueueOp, QueuePart, QueueReply, QueueRule};
use weir_queues::store::{QueueAsk, QueueStore as _};
use weir_store::redis::RedisStore;
use weir_store::{Decision, Verdicts};
use weir_testing::{DecideOne as _, RedisServer};
use weir_units::Micros;

use super::{Figures, PAYLOAD, READY, TURNS, measured, numbers, store};

/// Places of the queue, and calls of the log in an hour. No call of a measurement is refused.
const LIMIT: u64 = 10_000;

/// Calls before a measurement, and in it.
const CALLS: [usize; 2] = [1_000, 8_000];

#[derive(Clone)]
enum Call {
    Enqueue(QueueRule),
    Log(Arc<Strategy>),
}

pub(super) async fn compare(redis: &RedisServer) {
    println!("\n{:<34}{:>8}{:>12}{:>14}{:>12}", "a call", "ready", "calls/s", "Redis CPU, µs", "own CPU, µs");
    let rule = QueueRule::new("bench", QueueNumbers { capacity: LIMIT, ..numbers() });
    let calls = [
        ("Enqueue, 10,000 places", Call::Enqueue(rule.unwrap())),
        ("sliding_log, 10,000 an hour", Call::Log(log())),
    ];
    for ready in READY {
        let mut figures = [const { Vec::new() }; 2];
        for _ in 0..TURNS {
            for ((_, call), figures) in calls.iter().zip(&mut figures) {
                redis.cli(&["FLUSHALL", "SYNC"]);
                let store = Arc::new(store(redis));
                run(&store, call, CALLS[0], ready).await;
                figures.push(measured(redis, CALLS[1], run(&store, call, CALLS[1], ready)).await);
            }
        }
        for ((name, _), figures) in calls.iter().zip(figures) {
            Figures::median(figures).print(name, ready);
        }
    }
}

fn log() -> Arc<Strategy> {
    let limit = Limit {
        name: "log".into(),
        scope: Scope::new(&[Field::Resource]),
        algorithm: Algorithm::sliding_log(LIMIT, Micros::from_secs(3600)).unwrap(),
    };
    Arc::new(Strategy::new("bench", vec![limit], false, FailurePolicy::Error).unwrap())
}

async fn run(store: &Arc<RedisStore>, call: &Call, calls: usize, ready: usize) {
    let tasks = (0..ready).map(|_| {
        let (store, call) = (Arc::clone(store), call.clone());
        tokio::spawn(async move {
            for _ in 0..calls / ready {
                match &call {
                    Call::Enqueue(rule) => enqueue(&store, rule).await,
                    Call::Log(strategy) => decide(&store, strategy).await,
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

async fn enqueue(store: &RedisStore, rule: &QueueRule) {
    let items = [NewItem { digest: 0, id: "", payload: &PAYLOAD }];
    let op = QueueOp::Enqueue { items: &items };
    let answer = store.queue(&QueueAsk { rule, part: QueuePart::Main, op, deadline: None }).await.unwrap();
    assert!(matches!(answer.reply, QueueReply::Accepted { .. }), "{answer:?}");
}

async fn decide(store: &RedisStore, strategy: &Arc<Strategy>) {
    let subject = Subject { resource: "api", ..Subject::default() };
    let mut out = Verdicts::default();
    let decision = Decision::new(strategy, subject, Op::Peek, &[]);
    store.decide_one(&decision, Op::Charge, &[1], &mut out).await.unwrap();
    assert!(out.get(0).unwrap().0.allowed);
}
