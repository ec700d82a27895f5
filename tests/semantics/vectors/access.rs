//! Tables of `algorithm: "access"`: rows that the limiter decides, over whatever store.

use std::collections::BTreeMap;
use std::sync::Arc;

use prometheus::Registry;
use serde::Deserialize;
use serde_json::{Value, json};
use weir_core::algorithm::{Algorithm, Summary};
use weir_core::strategy::{
    Access, FailurePolicy, Field, Limit, Listed, Override, Resources, Rules, Scope, Strategy,
};
use weir_node::access::Rights;
use weir_node::limiter::{Answer, Begun, Limiter, LimiterError, LimitsDecision, Question};
use weir_node::settle::Outcome;
use weir_node::telemetry::Metrics;
use weir_store::{Store, Verdicts};
use weir_units::{Micros, Retry};

use super::retry_us;
use super::table::{Row, Table};

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    deny: Vec<String>,
    allow: Vec<String>,
    deny_wins: bool,
    overrides: BTreeMap<String, u64>,
    default: Default,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Default {
    limit: u64,
    window_us: u64,
}

/// The rules of a table, once with a fixed window and once with a log: its rows are true of both.
pub fn rules(id: &str, config: Value) -> [(Arc<Strategy>, Rules); 2] {
    let config: Config = serde_json::from_value(config).unwrap_or_else(|e| panic!("{id}: config: {e}"));
    assert!(config.deny_wins, "{id}: here it always does");
    let window = Micros(config.default.window_us);
    [
        of(&format!("{id}.window"), config.clone(), |limit| {
            Algorithm::fixed_window(limit, window, false, false)
        }),
        of(&format!("{id}.log"), config, |limit| Algorithm::sliding_log(limit, window)),
    ]
}

fn of<E: std::fmt::Debug>(
    name: &str,
    config: Config,
    algorithm: impl Fn(u64) -> Result<Algorithm, E>,
) -> (Arc<Strategy>, Rules) {
    let strategy = |limit: u64| {
        let algorithm = algorithm(limit).unwrap();
        let limit = Limit { name: "limit".into(), scope: Scope::new(&[Field::Consumer]), algorithm };
        Strategy::new(name, vec![limit], false, FailurePolicy::Error).unwrap()
    };
    let base = strategy(config.default.limit);
    let raised = |(consumer, limit): (String, u64)| {
        let mut raised = base.clone();
        raised.override_limit("limit", algorithm(limit).unwrap()).unwrap();
        Override { consumer, resource: "*".to_owned(), strategy: raised }
    };
    let overrides: Vec<Override> = config.overrides.into_iter().map(raised).collect();
    let rules = Rules::new(vec![base.clone()], Resources::default());
    let rules = rules.with_access(Access::new(config.deny, config.allow), []).with_overrides(overrides);
    (Arc::new(base), rules)
}

/// Returns the answer of the limiter to a row, by the names of the table.
pub async fn observed(table: &Table, rules: &Rules, row: &Row, store: impl Store) -> BTreeMap<String, Value> {
    let recorder = Metrics::register(&Registry::new(), rules).unwrap().recorder();
    let limiter = Limiter::new(Arc::new(rules.clone()), store, recorder);
    let question = Question {
        resource: &row.resource,
        consumer: &row.consumer,
        strategy: table.strategy.name(),
        cost: row.cost,
        ..Question::until(None, Rights::ALL)
    };
    let (mut observed, mut waiting) = (None, None);
    limiter.round().decide([&question].into_iter(), |begun| match begun {
        Begun::Answered(answer) => observed = Some(as_written(table, answer)),
        Begun::Waiting(later) => waiting = Some(later),
    });
    match (observed, waiting) {
        (Some(observed), _) => observed,
        (None, Some(mut waiting)) => {
            let mut verdicts = Verdicts::default();
            as_written(table, limiter.wait(&mut waiting, &mut verdicts).await)
        }
        (None, None) => panic!("{}: there is no answer", table.id),
    }
}

fn as_written(table: &Table, answer: Result<Answer<'_, '_>, LimiterError>) -> BTreeMap<String, Value> {
    let answer = answer.unwrap_or_else(|e| panic!("{}: {e}", table.id));
    let said = match answer.outcome {
        // A caller on a deny list has nothing to wait for. A caller on an allow list does not wait.
        Outcome::Listed(Listed::Deny) => {
            json!({"allowed": false, "reason": "deny_list", "retry_after_us": -1})
        }
        Outcome::Listed(Listed::Allow) => {
            json!({"allowed": true, "reason": "allow_list", "retry_after_us": 0})
        }
        Outcome::Banned(_) => panic!("no limit of the table bans"),
        Outcome::Decided(LimitsDecision { verdict, limits, .. }) => {
            let summary = Summary::new(answer.strategy.algorithms(), limits);
            let reason = if verdict.allowed { "ok" } else { "limit" };
            assert!(!verdict.allowed || summary.retry == Retry::Now, "{}", table.id);
            json!({
                "allowed": verdict.allowed,
                "reason": reason,
                "limit": summary.limit,
                "remaining": summary.remaining,
                "retry_after_us": retry_us(summary.retry),
                "reset_after_us": summary.reset_after.0,
            })
        }
        Outcome::Policy { .. } | Outcome::Local(_) => panic!("{}: the store failed", table.id),
    };
    serde_json::from_value(said).unwrap()
}
