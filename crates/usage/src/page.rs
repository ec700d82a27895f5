//! The data of the page `/ui`: decisions of the last hour and of the last ten minutes, consumers, decision times and nodes.

use serde_json::{Map, Value, json};
use weir_node::access::Rights;
use weir_node::feature_pages::{PageFields, PageModule, PageSource};
use weir_units::Micros;

use crate::history::{
    ConsumersAnswer, ConsumersAsk, ConsumersWindow, DeploymentNode, LatencyPoint, UsageAnswer, UsageAsk,
    UsageError, UsageHandle, UsageRow,
};

/// The sections of the page.
pub(crate) static MODULE: PageModule =
    PageModule { sections: include_str!("page.html"), script: include_str!("page.js") };

/// Minutes shown.
const MINUTES: u64 = 60;

/// Seconds shown.
const SECONDS: u64 = 600;

/// Consumers shown of each kind (denied, allowed), over all strategies.
const CONSUMERS: usize = 100;

/// Strategies with separate values for each second; those with the most calls.
const BY_SECOND: usize = 20;

/// The name under which all other strategies are added up.
const OTHERS: &str = "other strategies";

/// The fields of the page.
pub(crate) struct UsagePage(UsageHandle);

impl UsagePage {
    pub(crate) fn new(usage: UsageHandle) -> Self {
        Self(usage)
    }
}

impl PageSource for UsagePage {
    fn fields<'a>(&'a self, rights: Rights<'a>) -> PageFields<'a> {
        Box::pin(async move { collected(&self.0, rights).await.map_err(|error| error.to_string()) })
    }
}

/// The fields for a caller with these rights.
async fn collected(usage: &UsageHandle, rights: Rights<'_>) -> Result<Map<String, Value>, UsageError> {
    let (now, latency) = usage.latency().await?;
    let from = (now / 60 + 1).saturating_sub(MINUTES) * 60;
    let totals = usage.totals(rights, span(from, from + 60 * MINUTES, 60)).await?;
    let last = (now + 1).saturating_sub(SECONDS);
    let seconds = match usage.totals(rights, span(last, now + 1, 1)).await {
        // Too many series for each second: the hour is shown all the same.
        Err(UsageError::Invalid(_)) => Vec::new(),
        seconds => by_second(&seconds?, last),
    };
    let ask = |allowed| ConsumersAsk {
        strategy: None,
        allowed: Some(allowed),
        window: ConsumersWindow::Hour,
        n: CONSUMERS,
    };
    let (denied, allowed) =
        (usage.consumers(rights, ask(false)).await?, usage.consumers(rights, ask(true)).await?);
    let nodes = usage.nodes(rights).await?;
    let fields = [
        ("now", json!(now)),
        ("from", json!(from)),
        ("series", totals.rows.iter().map(|row| series(row, from)).collect()),
        ("seconds", json!({ "from": last, "series": seconds })),
        ("denied", json!(consumers(&denied))),
        ("allowed", json!(consumers(&allowed))),
        ("latency", latency.iter().map(point).collect()),
        ("nodes", nodes.nodes.iter().map(node).collect()),
        ("incomplete", json!(totals.incomplete.or(nodes.incomplete))),
    ];
    Ok(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn span(from: u64, to: u64, step: u64) -> UsageAsk {
    UsageAsk {
        from: Some(Micros::from_secs(from)),
        to: Some(Micros::from_secs(to)),
        step: Some(Micros::from_secs(step)),
        ..UsageAsk::default()
    }
}

/// Returns the calls per minute.
fn series(row: &UsageRow, from: u64) -> Value {
    let mut points = vec![0; MINUTES as usize];
    add(&mut points, row, from, 60);
    let costs = row.costs.iter().map(|cost| (cost.name.to_string(), cost.total.into()));
    json!({
        "strategy": &*row.strategy,
        "pattern": &*row.pattern,
        "outcome": &*row.outcome,
        "calls": row.total.calls,
        "cost": row.total.cost,
        "costs": Value::Object(costs.collect()),
        "points": points,
    })
}

fn add(points: &mut [u64], row: &UsageRow, from: u64, step: u64) {
    for (at, total) in &row.points {
        let place = usize::try_from(at.saturating_sub(from) / step).unwrap_or(usize::MAX);
        if let Some(calls) = points.get_mut(place) {
            *calls += total.calls;
        }
    }
}

/// Returns the calls per second by strategy and outcome, with the busiest strategies by themselves.
fn by_second(answer: &UsageAnswer, from: u64) -> Vec<Value> {
    let mut calls = std::collections::BTreeMap::<&str, u64>::new();
    for row in &answer.rows {
        *calls.entry(&row.strategy).or_default() += row.total.calls;
    }
    let mut busiest: Vec<(&str, u64)> = calls.into_iter().collect();
    busiest.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    busiest.truncate(BY_SECOND);
    let name = |row: &UsageRow| {
        let own = busiest.iter().find(|(name, _)| **name == *row.strategy);
        own.map_or_else(|| OTHERS.to_owned(), |(name, _)| (*name).to_owned())
    };
    let mut sums = std::collections::BTreeMap::<(String, &str), Vec<u64>>::new();
    for row in &answer.rows {
        let points = sums.entry((name(row), &row.outcome)).or_insert_with(|| vec![0; SECONDS as usize]);
        add(points, row, from, 1);
    }
    let one =
        |((strategy, outcome), points)| json!({ "strategy": strategy, "outcome": outcome, "points": points });
    sums.into_iter().map(one).collect()
}

fn consumers(answer: &ConsumersAnswer) -> Vec<Value> {
    let one = answer.consumers.iter().map(|(tally, sampling_error)| {
        json!({
            "consumer": &*tally.key.consumer,
            "strategy": &*tally.key.strategy,
            "calls": tally.count,
            "error": tally.error,
            "sampling_error": sampling_error,
        })
    });
    one.collect()
}

fn point(point: &LatencyPoint) -> Value {
    json!({ "at": point.at, "p50_us": point.p50_us, "p99_us": point.p99_us })
}

/// A row of the table of nodes.
fn node(node: &DeploymentNode) -> Value {
    let DeploymentNode { name, address, state, ended, version, started, files_read, files, control } = node;
    json!({
        "name": name, "address": address, "state": state.name(), "ended": ended, "version": version,
        "started": started, "files_read": files_read, "files": files,
        // A text: not every program reads numbers above 2^53 exactly.
        "control": control.to_string(),
    })
}
