//! What nodes of two versions share on one Redis: names of keys, and states to the last byte.
//!
//! Limits have fixtures, `upgrade/states-*.json`. What a release was asked, sent, answered and left in Redis, of limits,
//! leases and queues, has a folder of its own: `upgrade/0.1.0/README.md` says how it is made.
//!
//! `upgrade/states-1.json` holds the states that a version has written, and what it answers to them. A version that
//! writes other bytes breaks the nodes beside it that are not upgraded yet. A version that reads them otherwise
//! breaks the limits that are in Redis already. If the states must change, this file stays as it is, a new one comes
//! beside it, and `docs/deploy.md` says what an upgrade has to do.

mod answers;
mod beside;
mod bytes;
mod keys;
mod record;
mod release;
mod rows;
mod stories;
mod story;
mod usage;

use std::path::Path;

use redis::Value;
use serde_json::{Value as Json, json};
use weir_core::algorithm::Op;
use weir_core::key::Subject;
use weir_units::Micros;

use self::bytes::{hex, unhex};
use self::rows::{Row, rows, rows_of_ids, rows_of_many_buckets, rows_of_shaping};
use self::story::World;
use crate::support::RedisServer;
use crate::support::server::BASE;

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
    attributes: weir_core::strategy::Attributes::NONE,
};

/// Old nodes read what new nodes write, because both write the same.
#[tokio::test]
async fn the_states_are_written_as_before() {
    let redis = RedisServer::start();
    for (name, fixture, rows) in FIXTURES {
        let mut written = Vec::new();
        for row in rows() {
            redis.flush_all();
            let world = World::new(&redis).await;
            for step in &row.before {
                decide(&world, &row, *step).await;
            }
            let keys = keys(&redis);
            let mut answers = Vec::new();
            for step in &row.after {
                answers.push(decide(&world, &row, *step).await);
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
        let world = World::new(&redis).await;
        world.clock.set(Micros(BASE.0 + row.before.iter().map(|step| step.0).sum::<u64>()));
        for key in old["keys"].as_array().unwrap() {
            restore(&redis, key);
        }
        let answers = old["answers"].as_array().unwrap();
        assert_eq!(answers.len(), row.after.len(), "{}", row.name);
        for (step, expected) in row.after.iter().zip(answers) {
            assert_eq!(decide(&world, &row, *step).await, *expected, "{}", row.name);
        }
    }
}

/// Decides so many microseconds later, and returns the answer.
async fn decide(world: &World, row: &Row, (after, op, cost): (u64, Op, u64)) -> Json {
    world.pass(after);
    let mut answer = world.decide(&row.strategy, SUBJECT, row.id_of(op), op, cost).await;
    if let Some(fields) = answer.as_object_mut().filter(|_| !row.has_ids) {
        fields.remove("applied");
    }
    answer
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
        Json::String(value) => drop(command.arg(unhex(value))),
        _ => {
            for entry in key["list"].as_array().unwrap() {
                command.arg(unhex(entry.as_str().unwrap()));
            }
        }
    }
    let _: Value = command.query(&mut connection).unwrap();
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
    let all = weir_core::algorithm::EngineKind::ALL.map(weir_core::algorithm::EngineKind::name);
    assert_eq!(engines, all.into_iter().collect());
}
