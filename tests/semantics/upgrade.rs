//! What nodes of two versions share on one Redis: names of keys, and states to the last byte.
//!
//! `upgrade/states-1.json` holds the states that a version has written, and what it answers to them. A version that
//! writes other bytes breaks the nodes beside it that are not upgraded yet. A version that reads them otherwise
//! breaks the limits that are in Redis already. If the states must change, this file stays as it is, a new one comes
//! beside it, and `docs/deploy.md` says what an upgrade has to do.

mod rows;

use std::path::Path;
use std::sync::Arc;
use weir_testing::DecideOne as _;

use redis::Value;
use serde_json::{Value as Json, json};
use weir::algorithm::{LimitVerdict, Op, Verdict};
use weir::clock::{Clock, ManualClock};
use weir::config::Topology;
use weir::key::Subject;
use weir::store::redis::RedisStore;
use weir::store::{Decision, Part, Verdicts};
use weir::strategy::Strategy;
use weir::units::{Micros, Retry};

use self::rows::{Row, rows, rows_of_ids, rows_of_many_buckets, rows_of_shaping};
use crate::support::RedisServer;
use crate::support::server::BASE;
use crate::support::stores::redis_store;

/// A fixture, by its name, and what its version was asked.
type Fixture = (&'static str, &'static str, fn() -> Vec<Row>);

const FIXTURES: [Fixture; 4] = [
    ("states-1.json", include_str!("upgrade/states-1.json"), rows),
    ("states-2.json", include_str!("upgrade/states-2.json"), rows_of_shaping),
    ("states-3.json", include_str!("upgrade/states-3.json"), rows_of_many_buckets),
    ("states-4.json", include_str!("upgrade/states-4.json"), rows_of_ids),
];

const SUBJECT: Subject<'static> = Subject {
    resource: "zoo/lion",
    consumer: "bob",
    group: None,
    attributes: weir::strategy::Attributes::NONE,
};

/// Old nodes read what new nodes write, because both write the same.
#[tokio::test]
async fn the_states_are_written_as_before() {
    let redis = RedisServer::start();
    for (name, fixture, rows) in FIXTURES {
        let mut written = Vec::new();
        for row in rows() {
            redis.flush_all();
            let world = World::new(&redis, &row).await;
            for step in &row.before {
                world.decide(step.0, step.1, step.2).await;
            }
            let keys = keys(&redis);
            let mut answers = Vec::new();
            for (after, op, cost) in &row.after {
                answers.push(world.decide(*after, *op, *cost).await);
            }
            written.push(json!({ "name": row.name, "keys": keys, "answers": answers }));
        }
        let text = written.iter().map(Json::to_string).collect::<Vec<_>>().join(",\n");
        let text = format!("[\n{text}\n]\n");
        if text != fixture {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            std::fs::write(&path, &text).unwrap();
            panic!("other states are written than in tests/semantics/upgrade/{name}; see {}", path.display());
        }
    }
}

/// New nodes read what old nodes have written.
#[tokio::test]
async fn the_states_are_read_as_before() {
    let redis = RedisServer::start();
    let mut all = Vec::new();
    for (name, fixture, rows) in FIXTURES {
        let fixture: Vec<Json> = serde_json::from_str(fixture).unwrap();
        let rows = rows();
        assert_eq!(rows.len(), fixture.len(), "{name}");
        all.extend(rows.into_iter().zip(fixture));
    }
    for (row, old) in all {
        assert_eq!(old["name"], row.name);
        redis.flush_all();
        let world = World::new(&redis, &row).await;
        world.clock.set(Micros(BASE.0 + row.before.iter().map(|step| step.0).sum::<u64>()));
        for key in old["keys"].as_array().unwrap() {
            restore(&redis, key);
        }
        let answers = old["answers"].as_array().unwrap();
        assert_eq!(answers.len(), row.after.len(), "{}", row.name);
        for ((after, op, cost), expected) in row.after.iter().zip(answers) {
            assert_eq!(world.decide(*after, *op, *cost).await, *expected, "{}", row.name);
        }
    }
}

struct World<'a> {
    strategy: &'a Arc<Strategy>,
    /// Whether charges and debits have an id, too.
    has_ids: bool,
    clock: ManualClock,
    store: RedisStore,
}

impl<'a> World<'a> {
    async fn new(redis: &RedisServer, row: &'a Row) -> Self {
        let clock = ManualClock::at(BASE);
        let store = redis_store(vec![redis.url()], Topology::Single, Clock::Manual(clock.clone())).await;
        Self { strategy: &row.strategy, has_ids: row.has_ids, clock, store }
    }

    /// Decides so many microseconds later, and returns the answer.
    async fn decide(&self, after: u64, op: Op, cost: u64) -> Json {
        self.clock.set(Micros(self.clock.now().0 + after));
        let once = matches!(op, Op::Refund | Op::Reserve { .. } | Op::Cancel)
            || self.has_ids && matches!(op, Op::Charge | Op::AtMost | Op::Force);
        let part = if once { Part { id: "once", ..Part::ALL } } else { Part::ALL };
        let decision = Decision { part: Some(&part), ..Decision::new(self.strategy, SUBJECT, op, &[]) };
        let mut verdicts = Verdicts::default();
        match self.store.decide_one(&decision, op, &[cost], &mut verdicts).await {
            Err(error) => json!(error.to_string()),
            Ok(()) => {
                let (verdict, limits) = verdicts.get(0).unwrap();
                let mut answer = answer(verdict, limits);
                if self.has_ids {
                    answer["applied"] = json!(verdict.applied);
                }
                answer
            }
        }
    }
}

fn answer(verdict: &Verdict, limits: &[LimitVerdict]) -> Json {
    let retry = |retry: Retry| match retry {
        Retry::After(wait) => json!(wait.0),
        other => json!(format!("{other:?}")),
    };
    let limits: Vec<Json> = limits
        .iter()
        .map(|limit| {
            json!([format!("{:?}", limit.cause), limit.remaining, retry(limit.retry), limit.reset_after.0])
        })
        .collect();
    json!({ "allowed": verdict.allowed, "granted": verdict.granted, "limits": limits })
}

/// All keys with their values, in the order of their names.
fn keys(redis: &RedisServer) -> Vec<Json> {
    let mut names = redis.keys();
    names.sort();
    let value = |name: &String| match redis.query::<String>(&["TYPE", name]).as_str() {
        "string" => json!({ "key": name, "string": hex(&redis.query::<Vec<u8>>(&["GET", name])) }),
        "list" => {
            let entries: Vec<Vec<u8>> = redis.query(&["LRANGE", name, "0", "-1"]);
            json!({ "key": name, "list": entries.iter().map(|entry| hex(entry)).collect::<Vec<_>>() })
        }
        other => panic!("{name} is a {other}"),
    };
    names.iter().map(value).collect()
}

fn restore(redis: &RedisServer, key: &Json) {
    let name = key["key"].as_str().unwrap();
    let mut connection = redis.connection();
    let mut command = redis::cmd(if key["string"].is_string() { "SET" } else { "RPUSH" });
    command.arg(name);
    match &key["string"] {
        Json::String(value) => drop(command.arg(bytes(value))),
        _ => {
            for entry in key["list"].as_array().unwrap() {
                command.arg(bytes(entry.as_str().unwrap()));
            }
        }
    }
    let _: Value = command.query(&mut connection).unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The steps of a row leave states of every kind, or the fixture shows nothing.
#[test]
fn every_engine_has_a_row() {
    let engines: std::collections::BTreeSet<_> = FIXTURES
        .iter()
        .flat_map(|(_, _, rows)| rows())
        .collect::<Vec<_>>()
        .iter()
        .flat_map(|Row { strategy, .. }| strategy.limits().to_vec())
        .map(|limit| limit.algorithm.engine().name())
        .collect();
    let all = weir::algorithm::EngineKind::ALL.map(weir::algorithm::EngineKind::name);
    assert_eq!(engines, all.into_iter().collect());
}
