//! Health of the nodes of the store. Labels are the nodes that are probed now; a removed one is no longer exported.

use std::collections::HashMap;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{MetricFamily, MetricType};
use weir_store::backend::{BackendStatus, NodeStatus};

use super::families::{counter, family, labelled};
use super::sampled::gauge;

/// Metrics of the monitor.
pub(super) struct StoreMetrics {
    status: Box<dyn Fn() -> BackendStatus + Send + Sync>,
    descriptions: Vec<Desc>,
}

const NODE_UP: (&str, &str) = (
    "weir_store_node_up",
    "Whether a Redis node decides: 1 if it does, 0 if its probes fail or none has succeeded yet.",
);
const BREAKER_OPEN: (&str, &str) = (
    "weir_store_breaker_open",
    "Whether a Redis node is not asked, or in part, because its calls failed: on_store_failure answers at once.",
);
const BREAKER_OPENED: (&str, &str) =
    ("weir_store_breaker_opened_total", "How often that has begun, by Redis node.");
const BREAKERS_OPENED: (&str, &str) = (
    "weir_store_breaker_openings_total",
    "How often the breaker of any Redis node has opened, also of nodes that are gone.",
);
const MAY_EVICT: (&str, &str) = (
    "weir_store_node_may_evict",
    "Whether the maxmemory-policy of a Redis node lets it evict keys of limits.",
);
const EVICTED: (&str, &str) =
    ("weir_store_evicted_keys_total", "Keys that a Redis node evicted since this process looked first.");
const SECRET: (&str, &str) = (
    "weir_store_key_secret_mismatch",
    "Whether another node counts with another key_secret, so that limits are admitted twice.",
);

const RULES: (&str, &str) = (
    "weir_store_rules_mismatch",
    "Whether another node has other limits under the same names, in the same keys.",
);

impl StoreMetrics {
    pub(super) fn new(
        status: impl Fn() -> BackendStatus + Send + Sync + 'static,
    ) -> Result<Self, prometheus::Error> {
        let describe = |(name, help): (&str, &str), labels: &[&str]| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new())
        };
        let mut descriptions =
            vec![describe(SECRET, &[])?, describe(RULES, &[])?, describe(BREAKERS_OPENED, &[])?];
        for one in [NODE_UP, BREAKER_OPEN, BREAKER_OPENED, MAY_EVICT, EVICTED] {
            descriptions.push(describe(one, &["node"])?);
        }
        Ok(Self { status: Box::new(status), descriptions })
    }
}

impl Collector for StoreMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let BackendStatus { nodes, breakers_opened, other_key_secret, other_rules, .. } = (self.status)();
        let gauges = |(name, help): (&str, &str), value: fn(&NodeStatus) -> bool| {
            let metric = |node: &NodeStatus| {
                let mut gauge = gauge(f64::from(u8::from(value(node))));
                gauge.set_label(labelled(&[("node", &node.node)]).take_label());
                gauge
            };
            family(name, help, MetricType::GAUGE, nodes.iter().map(metric).collect())
        };
        let counters = |(name, help): (&str, &str), value: fn(&NodeStatus) -> u64| {
            let metric = |node: &NodeStatus| counter(&[("node", node.node.as_str())], value(node));
            family(name, help, MetricType::COUNTER, nodes.iter().map(metric).collect())
        };
        vec![
            gauges(NODE_UP, |node| node.up),
            gauges(BREAKER_OPEN, |node| node.breaker_open),
            counters(BREAKER_OPENED, |node| node.breaker_opened),
            family(
                BREAKERS_OPENED.0,
                BREAKERS_OPENED.1,
                MetricType::COUNTER,
                vec![counter(&[], breakers_opened)],
            ),
            gauges(MAY_EVICT, |node| node.may_evict),
            counters(EVICTED, |node| node.evicted_keys),
            family(SECRET.0, SECRET.1, MetricType::GAUGE, vec![gauge(f64::from(u8::from(other_key_secret)))]),
            family(RULES.0, RULES.1, MetricType::GAUGE, vec![gauge(f64::from(u8::from(other_rules)))]),
        ]
    }
}
