//! Health of the nodes of the store. Labels are the nodes that are probed now; a removed one is no longer exported.

use prometheus::proto::Metric;
use weir_store::backend::{BackendStatus, NodeStatus};

use super::families::{FamilySpec, counter, gauge};

pub(super) const FAMILIES: [FamilySpec; 8] = [
    FamilySpec::gauge(
        "weir_store_node_up",
        "Whether a Redis node decides: 1 if it does, 0 if its probes fail or none has succeeded yet.",
        &["node"],
    ),
    FamilySpec::gauge(
        "weir_store_breaker_open",
        "Whether a Redis node is not asked, or in part, because its calls failed: on_store_failure answers at once.",
        &["node"],
    ),
    FamilySpec::counter(
        "weir_store_breaker_opened_total",
        "How often that has begun, by Redis node.",
        &["node"],
    ),
    FamilySpec::counter(
        "weir_store_breaker_openings_total",
        "How often the breaker of any Redis node has opened, also of nodes that are gone.",
        &[],
    ),
    FamilySpec::gauge(
        "weir_store_node_may_evict",
        "Whether the maxmemory-policy of a Redis node lets it evict keys of limits.",
        &["node"],
    ),
    FamilySpec::counter(
        "weir_store_evicted_keys_total",
        "Keys that a Redis node evicted since this process looked first.",
        &["node"],
    ),
    FamilySpec::gauge(
        "weir_store_key_secret_mismatch",
        "Whether another node counts with another key_secret, so that limits are admitted twice.",
        &[],
    ),
    FamilySpec::gauge(
        "weir_store_rules_mismatch",
        "Whether another node has other limits under the same names, in the same keys.",
        &[],
    ),
];

pub(super) fn metrics(status: &BackendStatus) -> [Vec<Metric>; FAMILIES.len()] {
    let BackendStatus { nodes, breakers_opened, other_key_secret, other_rules, .. } = status;
    let flag = |labels: &[(&str, &str)], is_set: bool| gauge(labels, f64::from(u8::from(is_set)));
    let gauges = |value: fn(&NodeStatus) -> bool| {
        nodes.iter().map(|node| flag(&[("node", &node.node)], value(node))).collect()
    };
    let counters = |value: fn(&NodeStatus) -> u64| {
        nodes.iter().map(|node| counter(&[("node", &node.node)], value(node))).collect()
    };
    [
        gauges(|node| node.up),
        gauges(|node| node.breaker_open),
        counters(|node| node.breaker_opened),
        vec![counter(&[], *breakers_opened)],
        gauges(|node| node.may_evict),
        counters(|node| node.evicted_keys),
        vec![flag(&[], *other_key_secret)],
        vec![flag(&[], *other_rules)],
    ]
}
