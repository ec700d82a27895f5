//! The `rate_limit` of a descriptor.

use crate::rules::{Draft, Kind, RateLimit, Unit};
use weir_config::foreign::{Content, MistakeReport, YamlNode, quote, shortened};
use weir_core::strategy::FailurePolicy;

use super::node::{Map, text};

/// Our extensions: the parameters of counting.
const NUMBERS: [&str; 7] =
    ["algorithm", "burst", "unit_multiplier", "on_store_failure", "count_rejected", "bill", "max_debt"];

const ALGORITHMS: &str =
    "fixed_window, sliding_window, sliding_log, token_bucket, gcra, leaky_bucket, interval_refill";

/// Reads `node` as a rule, without the keys of its descriptor.
pub(super) fn rate_limit(node: &YamlNode, report: &mut MistakeReport) -> Option<Draft> {
    let map = Map::from_node(node, "config.YamlRateLimit", report)?;
    let name = map.text("name", report).unwrap_or_default().to_owned();
    let replaces = replaces(&map, &name, report);
    let reported = report.len();
    let requests = map.number("requests_per_unit", report);
    let shown = map.text("unit", report).unwrap_or_default();
    let unit = Unit::named(shown);
    if map.is("unlimited", report) {
        if unit.is_some() {
            let at = map.get("unit").map_or(node.at, |unit| unit.at);
            report.at(at, "", "should not specify rate limit unit when unlimited");
        }
        for name in NUMBERS {
            if let Some((at, _)) = map.entry(name) {
                report.at(at, "", format!("should not specify {name} when unlimited"));
            }
        }
        return Some(Draft { name, replaces, ..Draft::default() });
    }
    if unit.is_none() && report.len() == reported {
        let at = map.get("unit").map_or(node.at, |unit| unit.at);
        report.at(at, "", format!("invalid rate limit unit '{}'", shortened(shown).escape_debug()));
    }
    let requests = requests.unwrap_or(0);
    let kind = kind(&map, requests, report);
    let policy = policy(&map, report);
    let multiplier = map.number("unit_multiplier", report).unwrap_or(1);
    let bill = map.get("bill").map(|_| map.is("bill", report));
    let max_debt = max_debt(&map, report);
    if report.len() > reported {
        return None;
    }
    match RateLimit::new(requests, unit?, multiplier, kind?, policy) {
        Ok(limit) => {
            let bills = bill.unwrap_or(limit.bills());
            if let Some((at, _)) = map.entry("max_debt").filter(|_| !bills) {
                report.at(at, "", "max_debt is for rules that bill; this one has no `bill: true`");
                return None;
            }
            let limit = limit.billing(bills);
            let limit = max_debt.map_or(limit.clone(), |max_debt| limit.with_max_debt(max_debt));
            let given = NUMBERS.into_iter().filter(|key| map.entry(key).is_some()).collect();
            Some(Draft { name, replaces, limit: Some(limit), given, ..Draft::default() })
        }
        Err(invalid) => {
            let at = map.get(invalid.field).map_or(node.at, |node| node.at);
            report.at(at, "", format!("{} is out of bounds: {}", invalid.field, invalid.bound));
            None
        }
    }
}

fn replaces(map: &Map<'_>, own: &str, report: &mut MistakeReport) -> Vec<String> {
    let mut names = Vec::new();
    for item in map.list("replaces", "[]config.yamlReplaces", report) {
        let Some(entry) = Map::from_node(item, "config.yamlReplaces", report) else { continue };
        let reported = report.len();
        match entry.text("name", report) {
            None if report.len() > reported => {}
            None => report.at(item.at, "", "should not have an empty replaces entry"),
            Some(name) if name == own => {
                report.at(item.at, "", "replaces should not contain name of same descriptor");
            }
            Some(name) => names.push(name.to_owned()),
        }
    }
    names
}

/// Reads the kind of counting; the default is that of the reference.
fn kind(map: &Map<'_>, requests: u32, report: &mut MistakeReport) -> Option<Kind> {
    let node = map.get("algorithm");
    let name =
        node.and_then(|node| text(node, report)).filter(|name| !name.is_empty()).unwrap_or("fixed_window");
    let count_rejected = map.is("count_rejected", report);
    let burst = map.number("burst", report);
    let size = u64::from(burst.unwrap_or(requests));
    let (kind, bursts, rejects) = match name {
        "fixed_window" => (Kind::FixedWindow { count_rejected }, false, true),
        "sliding_window" => (Kind::SlidingWindow, false, false),
        "sliding_log" => (Kind::SlidingLog { count_rejected }, false, true),
        "token_bucket" | "gcra" | "leaky_bucket" => (Kind::Bucket { burst: size }, true, false),
        "interval_refill" => (Kind::IntervalRefill { burst: size }, true, false),
        "leaky_queue" => {
            if let Some(node) = node {
                let reason = "algorithm leaky_queue makes a call wait for its turn, and Envoy cannot hold a request; use \
                              token_bucket, or gcra";
                report.at(node.at, "", reason);
            }
            return None;
        }
        other => {
            if let Some(node) = node {
                report.at(node.at, "", format!("algorithm {} is not one of {ALGORITHMS}", quote(other)));
            }
            return None;
        }
    };
    let mut refuse = |key: &str, those: &str| {
        if let Some((at, _)) = map.entry(key) {
            report.at(at, "", format!("{key} is for the algorithms {those}; this one is {name}"));
        }
    };
    if !bursts {
        refuse("burst", "token_bucket, gcra, leaky_bucket and interval_refill");
    }
    if !rejects && count_rejected {
        refuse("count_rejected", "fixed_window and sliding_log");
    }
    Some(kind)
}

/// Reads how far bills may exceed the limit: a number of hits, or `unlimited`.
fn max_debt(map: &Map<'_>, report: &mut MistakeReport) -> Option<Option<u64>> {
    let node = map.get("max_debt")?;
    match &node.content {
        Content::Scalar { text, .. } if text == "unlimited" => Some(None),
        Content::Scalar { text, .. } if !text.starts_with(|first: char| first.is_ascii_digit()) => {
            let text = format!("max_debt is `{text}`: it must be a number of hits, or `unlimited`");
            report.at(node.at, "", text);
            None
        }
        _ => map.number("max_debt", report).map(|debt| Some(u64::from(debt))),
    }
}

fn policy(map: &Map<'_>, report: &mut MistakeReport) -> FailurePolicy {
    let Some(node) = map.get("on_store_failure") else { return FailurePolicy::default() };
    match text(node, report) {
        Some("allow") => FailurePolicy::Allow,
        Some("deny") => FailurePolicy::Deny,
        Some("error" | "") | None => FailurePolicy::Error,
        Some(other) => {
            report.at(
                node.at,
                "",
                format!("on_store_failure {} is not one of allow, deny, error", quote(other)),
            );
            FailurePolicy::Error
        }
    }
}
