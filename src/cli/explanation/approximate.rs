//! What a strategy that nodes count on their own may admit above its limit, in words with the numbers of the configuration.

use serde_json::{Value, json};
use weir_core::strategy::Strategy;

use super::algorithm::span;

/// Returns the sentences about a strategy; none if its nodes do not count on their own.
pub(in crate::cli) fn lines(strategy: &Strategy) -> Vec<String> {
    let (Some(rule), Some(limit)) = (strategy.approximate(), strategy.algorithms().first()) else {
        return Vec::new();
    };
    let (max_over, nodes) = (rule.bound.max_over(), rule.bound.nodes());
    let (share, limit) = (rule.bound.share(), limit.limit());
    let all = (nodes - 1) * share;
    vec![
        format!(
            "a window of {window} admits at most {all} above the limit of {limit}, whatever is late, lost or crashed: {others} \
             nodes with at most {share} each that Redis has not counted when another one gets the last unit; max_over is \
             {max_over}",
            window = span(rule.bound.window().0),
            others = nodes - 1,
        ),
        format!(
            "{nodes} nodes count on their own and tell Redis every {sync} what they have counted; Redis decides for further \
             nodes, at a limit of {smaller}, and says so in /readyz",
            sync = rule.sync,
            smaller = limit - share,
        ),
        format!(
            "a loss of Redis's data and a step of its clock add at most {limit} + {max_over} + {nodes} * {share} each; answers \
             of on_store_failure, debits and refunds are not part of the bound",
        ),
    ]
}

/// Returns the numbers and the sentences.
pub(super) fn value(strategy: &Strategy) -> Option<Value> {
    let rule = strategy.approximate()?;
    Some(json!({
        "max_over": rule.bound.max_over(),
        "nodes": rule.bound.nodes(),
        "share": rule.bound.share(),
        "sync_us": rule.sync.0,
        "bound": lines(strategy),
    }))
}
