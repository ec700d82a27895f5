//! The numbers of strategies and rules that nodes count on their own, as JSON.

use serde_json::{Value, json};
use weir_core::strategy::ApproximateRule;

/// Returns the numbers.
pub(super) fn numbers(rule: &ApproximateRule) -> Value {
    json!({
        "max_over": rule.bound.max_over(),
        "nodes": rule.bound.nodes(),
        "share": rule.bound.share(),
        "sync_us": rule.sync.0,
    })
}
