//! The alerts are those of docs/metrics.md, and a real Prometheus takes them.

use std::collections::BTreeSet;

use super::super::{dashboard, read, yaml};
use crate::support::Prometheus;

const RULES: &str = "deploy/kubernetes/components/monitoring/prometheusrule.yaml";

fn expressions() -> Vec<String> {
    let rules = yaml(RULES);
    let rules = rules["spec"]["groups"][0]["rules"].as_array().unwrap();
    rules.iter().map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_alerts_are_those_of_the_documentation() {
    let page = read("docs/metrics.md");
    let list = page.split_once("Set alerts on these:").unwrap().1.split_once("\n\n").unwrap().1;
    let list = list.split("\n\n").next().unwrap();
    let documented = dashboard::words(list, &["weir_"]);
    let expressions = expressions().join("\n");
    let mut alerted = dashboard::words(&expressions, &["weir_"]);
    assert!(alerted.remove("weir_decisions_total"), "outcomes are of decisions");
    assert_eq!(alerted, documented);
    for outcome in ["degraded_", "error", "repeated"] {
        assert!(list.contains(&format!("`{outcome}")) && expressions.contains(outcome), "{outcome}");
    }
}

#[test]
fn every_alert_names_metrics_that_exist() {
    let page = dashboard::pages();
    let series = page.lines().filter(|line| !line.starts_with('#'));
    let samples: BTreeSet<&str> = series.map(|line| line.split(['{', ' ']).next().unwrap()).collect();
    for expression in expressions() {
        for metric in dashboard::words(&expression, &["weir_"]) {
            assert!(samples.contains(metric), "{metric} of {expression} is not on the page");
        }
    }
}

/// The whole file is read by Prometheus, templates of annotations included.
#[test]
fn a_real_prometheus_takes_the_alerts() {
    let groups = yaml(RULES)["spec"].clone();
    let Some(taken) = Prometheus::check_rules(&groups.to_string()) else { return };
    assert_eq!(taken, expressions().len());
}
