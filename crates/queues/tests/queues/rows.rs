//! The rows `bounded_queue` of tests/vectors.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use weir_queues::model::{
    ItemId, NewItem, QueueAnswer, QueueKind, QueueNumbers, QueueOp, QueueRefusal, QueueReply, QueueRule,
};
use weir_queues::store::QueueStore;
use weir_time::clock::ManualClock;
use weir_units::Micros;

use super::world::{self, START, numbers};
use crate::support::vectors::folder;

weir_testing::on_every_engine!(world, run);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    id: String,
    #[serde(rename = "algorithm")]
    _algorithm: String,
    config: RawQueue,
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "note")]
    _note: String,
    #[serde(rename = "tolerance_us")]
    _tolerance_us: u64,
    steps: Vec<RawRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawQueue {
    limit: u64,
    mode: String,
    visibility_us: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    at_us: u64,
    op: String,
    cost: Option<usize>,
    consumer: Option<String>,
    item: Option<usize>,
    expect: BTreeMap<String, Value>,
}

/// Items are numbered in the order in which they were accepted.
#[derive(Default)]
struct Numbered(Vec<ItemId>);

impl Numbered {
    fn number(&self, id: ItemId) -> usize {
        self.0.iter().position(|known| *known == id).expect("an item that was accepted") + 1
    }
}

async fn run(store: &impl QueueStore, clock: &ManualClock) {
    let text = std::fs::read_to_string(folder().join("bounded_queue.json")).unwrap();
    let tables: Vec<RawTable> = serde_json::from_str(&text).unwrap();
    let (mut rows, mut wrong) = (0, Vec::new());
    for table in tables {
        let rule = rule(&table.config);
        let mut numbered = Numbered::default();
        for (number, row) in table.steps.iter().enumerate() {
            clock.set(Micros(START + row.at_us));
            let items = vec![NewItem { digest: 0, id: "", payload: b"work" }; row.cost.unwrap_or(0)];
            let ids: Vec<ItemId> = row.item.iter().map(|item| numbered.0[item - 1]).collect();
            let op = match row.op.as_str() {
                "enqueue" => QueueOp::Enqueue { items: &items },
                "take" => QueueOp::Take { token: 0, taker: row.consumer.as_deref().unwrap(), max_items: 1 },
                "ack" => QueueOp::Ack { tokens: &[], ids: &ids, outcome: "" },
                other => panic!("{}: the operation `{other}` is not understood", table.id),
            };
            let answer = world::call(store, &rule, op).await;
            if let QueueReply::Accepted { ids, .. } = &answer.reply {
                numbered.0.extend(ids);
            }
            rows += 1;
            for (name, want) in &row.expect {
                let got = observed(name, &answer, &numbered, table.config.limit);
                if got != *want {
                    wrong.push(format!("{} row {}: {name} is {got}, not {want}", table.id, number + 1));
                }
            }
        }
    }
    assert!(rows > 0, "the file has no row");
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

fn rule(raw: &RawQueue) -> QueueRule {
    let kind = match raw.mode.as_str() {
        "stream" => QueueKind::Stream,
        "list" => QueueKind::List,
        other => panic!("the mode `{other}` is not understood"),
    };
    let defaults = numbers(raw.limit);
    let visibility = raw.visibility_us.map_or(defaults.visibility, Micros);
    // The rows know no dead letters: an item is offered as often as it takes.
    world::queue(QueueNumbers { kind, visibility, max_deliveries: None, ..defaults })
}

fn observed(name: &str, answer: &QueueAnswer, numbered: &Numbered, limit: u64) -> Value {
    match (name, &answer.reply) {
        ("limit", _) => json!(limit),
        ("depth", _) => json!(answer.depth),
        ("remaining", _) => json!(limit - answer.depth),
        ("allowed", reply) => json!(matches!(reply, QueueReply::Accepted { .. })),
        ("retry_after_us", QueueReply::Accepted { .. }) => json!(0),
        ("retry_after_us", QueueReply::Refused(QueueRefusal::Full)) => Value::Null,
        ("retry_after_us", QueueReply::Refused(QueueRefusal::Never)) => json!(-1),
        ("ids", QueueReply::Accepted { ids, .. }) => ids.iter().map(|id| numbered.number(*id)).collect(),
        ("ids", QueueReply::Refused(_)) => json!([]),
        ("id", QueueReply::Taken { items, .. }) => items.first().map(|item| numbered.number(item.id)).into(),
        ("acked", QueueReply::Settled { done, .. }) => json!(done[0]),
        _ => panic!("the column `{name}` of {answer:?} is not understood"),
    }
}
