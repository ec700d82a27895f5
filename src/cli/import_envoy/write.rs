//! Formats imported rules as a configuration.

use std::fmt::Write as _;

use weir_core::strategy::FailurePolicy;
use weir_envoy::rules::{Kind, RateLimit, Unit};

use super::rule::Imported;

/// Formats the whole file.
pub(super) fn configuration(source: &str, rules: &[Imported]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "# The limits of {}, as `weir import-envoy` prints them.\n\
         #\n\
         # A descriptor [a=1, b=2] of domain d is asked for as the resource d/a=1/b=2:\n\
         #   weir allow d/a=1/b=2\n\
         # Where a comment says so, callers name the strategy and give values as attributes.\n\
         \n\
         strategies:\n",
        source.escape_debug()
    );
    for rule in rules {
        strategy(&mut out, rule);
    }
    let patterns: Vec<(&str, &str)> =
        rules.iter().filter_map(|rule| Some((rule.pattern.as_deref()?, rule.strategy.as_str()))).collect();
    if !patterns.is_empty() {
        out.push_str("\nresources:\n");
    }
    for (pattern, strategy) in patterns {
        let _ = writeln!(out, "  - {{ match: {}, strategy: {} }}", quoted(pattern), quoted(strategy));
    }
    out
}

fn strategy(out: &mut String, rule: &Imported) {
    let _ = writeln!(out, "  # {}", rule.path.escape_debug());
    for lost in &rule.lost {
        let _ = writeln!(out, "  # not expressed: {}", lost.escape_debug());
    }
    let Some(limit) = &rule.limit else { return };
    for (attribute, key) in &rule.attributes {
        let _ = writeln!(out, "  # attribute {attribute} is the value of {}", key.escape_debug());
    }
    let _ = writeln!(out, "  {}:", quoted(&rule.strategy));
    let _ = writeln!(out, "    limits:");
    let per = rule.scope.join(", ");
    let _ = writeln!(out, "      - {{ name: {}, per: [{per}], {} }}", limit.unit().name(), algorithm(limit));
    match limit.strategy().on_store_failure() {
        FailurePolicy::Allow => out.push_str("    on_store_failure: allow\n"),
        FailurePolicy::Deny => out.push_str("    on_store_failure: deny\n"),
        // Envoy's rules have no `local`.
        FailurePolicy::Error | FailurePolicy::Local(_) => {}
    }
}

fn algorithm(limit: &RateLimit) -> String {
    let (requests, period) = (limit.requests_per_unit(), period(limit));
    let counted = |count_rejected: bool| if count_rejected { ", count_denied: true" } else { "" };
    match limit.kind() {
        Kind::FixedWindow { count_rejected } => {
            format!("fixed_window: {{ limit: {requests}, window: {period}{} }}", counted(count_rejected))
        }
        Kind::SlidingWindow => format!("sliding_window: {{ limit: {requests}, window: {period} }}"),
        Kind::SlidingLog { count_rejected } => {
            format!("sliding_log: {{ limit: {requests}, window: {period}{} }}", counted(count_rejected))
        }
        // A bucket must refill, so a limit of 0 becomes a window.
        Kind::Bucket { .. } | Kind::IntervalRefill { .. } if requests == 0 => {
            format!("fixed_window: {{ limit: 0, window: {period} }}")
        }
        Kind::Bucket { burst } => format!("token_bucket: {{ rate: {requests}/{period}, burst: {burst} }}"),
        Kind::IntervalRefill { burst } => {
            format!(
                "interval_refill: {{ capacity: {burst}, refill: {requests}, period: {period}, aligned: true }}"
            )
        }
    }
}

/// Formats the period as a duration of the configuration.
fn period(limit: &RateLimit) -> String {
    let (days, letter) = match limit.unit() {
        Unit::Second => (1, 's'),
        Unit::Minute => (1, 'm'),
        Unit::Hour => (1, 'h'),
        Unit::Day => (1, 'd'),
        Unit::Week => (1, 'w'),
        Unit::Month => (30, 'd'),
        Unit::Year => (365, 'd'),
    };
    format!("{}{letter}", u64::from(limit.unit_multiplier()) * days)
}

/// Formats text in double quotes. YAML reads all escapes of JSON; it also requires escapes for control characters
/// that JSON does not escape.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for letter in serde_json::Value::from(text).to_string().chars() {
        if letter.is_control() {
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
    out
}
