//! The excess of a strategy that nodes count on their own, in words with the numbers of the configuration.

use serde_json::Value;
use weir_core::strategy::{ApproximateRule, Strategy};
use weir_units::Micros;

use super::algorithm::span;
use crate::cli::approximate::numbers;

/// Returns the sentences about a strategy; none if its nodes do not count on their own.
pub(in crate::cli) fn lines(strategy: &Strategy) -> Vec<String> {
    let (Some(rule), Some(limit)) = (strategy.approximate(), strategy.algorithms().first()) else {
        return Vec::new();
    };
    over(rule, limit.limit())
}

/// Of nodes that admit units that the others have not seen.
fn over(rule: &ApproximateRule, limit: u64) -> Vec<String> {
    let (max_over, nodes) = (rule.bound.max_over(), rule.bound.nodes());
    let share = rule.bound.share();
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

/// The longest time for which a place that was lost may be blocked without a warning.
const LONG_BLOCKED: Micros = Micros::from_secs(600);

/// Returns what the loss of a place costs, where it is much: nodes without a place deny at a smaller limit meanwhile.
pub(in crate::cli) fn warning(strategy: &Strategy) -> Option<String> {
    let (rule, limit) = (strategy.approximate()?, strategy.algorithms().first()?.limit());
    let (share, blocked) = (rule.bound.share(), Micros(rule.bound.window().0.saturating_mul(2)));
    let is_much = share.saturating_mul(10) > limit || blocked > LONG_BLOCKED;
    is_much.then(|| {
        format!(
            "`max_over`: the place of a node that crashes stays blocked for two windows ({}), and a node without a place denies at \
             {} instead of {limit} meanwhile; a smaller `max_over` or more `nodes` make the difference smaller",
            span(blocked.0),
            limit.saturating_sub(share),
        )
    })
}

/// Returns the numbers and the sentences.
pub(super) fn value(strategy: &Strategy) -> Option<Value> {
    let rule = strategy.approximate()?;
    let mut value = numbers(rule);
    value["bound"] = lines(strategy).into();
    Some(value)
}
