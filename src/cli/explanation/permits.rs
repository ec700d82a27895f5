//! The explanation of a concurrency limit, as text and as JSON.

use serde_json::{Value, json};
use weir_core::strategy::{
    AdaptiveRule, ConcurrencyRule, ControllerRule, LimitSource, MAX_LEASES, Partitions,
};

use super::algorithm::span;

/// Returns one sentence each for the limit, the leases and the partitions.
pub(super) fn lines(rule: &ConcurrencyRule) -> Vec<String> {
    let numbers = rule.numbers();
    let mut lines = vec![limit(rule)];
    let weight = match numbers.max_weight {
        Some(weight) => format!("at most {weight} permits each"),
        None => "any weight up to the limit".to_owned(),
    };
    lines.push(format!(
        "a lease lasts {} unless its holder says otherwise, at most {} without being renewed; {weight}; at most \
         {MAX_LEASES} leases",
        span(numbers.ttl.0),
        span(numbers.max_ttl.0)
    ));
    if let Some(partitions) = &numbers.partitions {
        lines.push(format!(
            "partitions by {}: {}; together they exceed the limit by at most the sum of what each may always have",
            partitions.by(),
            shares(partitions)
        ));
    }
    lines
}

fn limit(rule: &ConcurrencyRule) -> String {
    match &rule.numbers().source {
        LimitSource::Fixed(0) => "no permits; nothing ever passes".to_owned(),
        LimitSource::Fixed(limit) => format!("{limit} permits at a time"),
        LimitSource::Adaptive(AdaptiveRule { initial, min, max, controller, sampling, idle }) => {
            let samples = match sampling {
                Some(rule) => {
                    format!("samples of at least {} and {} releases", span(rule.window.0), rule.samples)
                }
                None => "each release is a sample".to_owned(),
            };
            format!(
                "{min} to {max} permits at a time, {initial} at first, by {}: {}; {samples}; forgotten {} after the last \
                 lease",
                controller.name(),
                controller_text(controller),
                span(idle.0)
            )
        }
    }
}

fn controller_text(controller: &ControllerRule) -> String {
    match controller {
        ControllerRule::Aimd(rule) => {
            format!(
                "times {} after a drop or more than {}, else one more",
                rule.backoff,
                span(rule.timeout.0)
            )
        }
        ControllerRule::Vegas(rule) => format!("by the shortest round trip, smoothing {}", rule.smoothing),
        ControllerRule::Gradient2(rule) => format!(
            "by the average of {} samples, tolerance {}, queue {}, smoothing {}; drops are ignored",
            rule.long_window, rule.tolerance, rule.queue, rule.smoothing
        ),
    }
}

fn shares(partitions: &Partitions) -> String {
    let share = |(name, share): &(Box<str>, u64)| format!("{name} {}", *share as f64 / 1000.0);
    let shares: Vec<String> = partitions.shares().iter().map(share).collect();
    shares.join(", ")
}

/// Formats the explanation as JSON.
pub(super) fn value(rule: &ConcurrencyRule, keys: &[String; 2]) -> Value {
    let numbers = rule.numbers();
    let (limit, adaptive) = match &numbers.source {
        LimitSource::Fixed(limit) => (Some(*limit), None),
        LimitSource::Adaptive(adaptive) => {
            let AdaptiveRule { initial, min, max, controller, sampling, idle } = adaptive;
            let sampling =
                sampling.map(|rule| json!({ "window_us": rule.window.0, "samples": rule.samples }));
            let value = json!({
                "controller": controller.name(),
                "initial": initial,
                "min": min,
                "max": max,
                "sampling": sampling,
                "idle_us": idle.0,
            });
            (None, Some(value))
        }
    };
    let partitions = numbers.partitions.as_ref().map(|partitions| {
        let shares = partitions.shares().iter();
        let shares: serde_json::Map<String, Value> =
            shares.map(|(name, share)| (name.to_string(), json!(*share as f64 / 1000.0))).collect();
        json!({ "by": partitions.by(), "shares": shares })
    });
    json!({
        "limit": limit,
        "adaptive": adaptive,
        "ttl_us": numbers.ttl.0,
        "max_ttl_us": numbers.max_ttl.0,
        "max_weight": numbers.max_weight,
        "partitions": partitions,
        "keys": keys,
    })
}
