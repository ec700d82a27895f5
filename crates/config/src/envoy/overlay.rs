//! Reads `envoy.rules`.

use crate::approximate;
use crate::errors::MistakeReport;
use crate::failure_policy::policy;
use crate::fields::{Mapping, NamedNode};
use crate::overlay::{
    EnvoyOverlay, MAX_ENVOY_TEXT, MAX_RULES, OverlayAlgorithm, OverlayRule, RuleChange, RulePattern,
};
use crate::values::{Scalar, boolean, choice, integer, quote, text_within};

/// The longest path of a rule.
const MAX_PATH: usize = 64 << 10;

const ALGORITHMS: [(&str, OverlayAlgorithm); 7] = [
    ("fixed_window", OverlayAlgorithm::FixedWindow),
    ("sliding_window", OverlayAlgorithm::SlidingWindow),
    ("sliding_log", OverlayAlgorithm::SlidingLog),
    ("token_bucket", OverlayAlgorithm::Bucket),
    ("gcra", OverlayAlgorithm::Bucket),
    ("leaky_bucket", OverlayAlgorithm::Bucket),
    ("interval_refill", OverlayAlgorithm::IntervalRefill),
];

/// Reads the list in `envoy` of a service whose store may be the memory of this process.
pub(super) fn overlay(fields: &mut Mapping<'_>, in_memory: bool, report: &mut MistakeReport) -> EnvoyOverlay {
    let Some(value) = fields.take("rules") else { return EnvoyOverlay::default() };
    let items = value.items(report).unwrap_or_default();
    if items.len() > MAX_RULES {
        value.report(report, format!("has {} entries: at most {MAX_RULES}", items.len()));
        return EnvoyOverlay::default();
    }
    let mut rules: Vec<OverlayRule> = Vec::new();
    for item in &items {
        let Some(rule) = one(item, in_memory, report) else { continue };
        let clash = rules.iter().find(|other| {
            let (own, other_pattern) = (&rule.pattern, &other.pattern);
            let is_ordered = own.is_within(other_pattern) != other_pattern.is_within(own);
            other.domain == rule.domain && own.meets(other_pattern) && !is_ordered
        });
        if let Some(other) = clash {
            let reason = format!(
                "`{}` and `{}` match the same rules, and neither is more specific",
                other.path, rule.path
            );
            item.report(report, reason);
        }
        rules.push(rule);
    }
    EnvoyOverlay::new(rules)
}

fn one(item: &NamedNode<'_>, in_memory: bool, report: &mut MistakeReport) -> Option<OverlayRule> {
    let mut fields = Mapping::of(item, report);
    let domain = fields.require("domain", "it is the domain of the rules", report);
    let domain = domain.and_then(|value| value.read(report, |text| text_within(text, MAX_ENVOY_TEXT)));
    let path = fields.require("path", "it is the label `rule` of `weir_envoy_hits_total`", report);
    let path = path.and_then(|value| {
        value.read(report, |text| {
            let text = text_within(text, MAX_PATH)?;
            let pattern = RulePattern::parse(&text);
            pattern
                .map(|pattern| (text.clone(), pattern))
                .map_err(|reason| format!("{}: {reason}", quote(&text)))
        })
    });
    let reported = report.len();
    let change = change(&mut fields, in_memory, report);
    if change.keys().next().is_none() && fields.is_whole() && report.len() == reported {
        item.report(report, "changes nothing; say how the rules count");
    }
    fields.finish(report);
    let (path, pattern) = path?;
    Some(OverlayRule { domain: domain?, path, pattern, change })
}

fn change(fields: &mut Mapping<'_>, in_memory: bool, report: &mut MistakeReport) -> RuleChange {
    let on_store_failure = fields.take("on_store_failure");
    let approximate = fields.take("approximate");
    RuleChange {
        algorithm: fields.read("algorithm", report, |text| choice(text, &ALGORITHMS)),
        burst: fields.read("burst", report, small),
        count_rejected: fields.read("count_rejected", report, boolean),
        unit_multiplier: fields.read("unit_multiplier", report, small),
        on_store_failure: on_store_failure.and_then(|value| policy(&value, in_memory, report)),
        bill: fields.read("bill", report, boolean),
        max_debt: fields.read("max_debt", report, |text| match text.text {
            "unlimited" => Ok(None),
            _ => integer(text).map(Some).map_err(|error| format!("{error}, or `unlimited`")),
        }),
        approximate: approximate.and_then(|value| approximate::numbers(&value, in_memory, report)),
    }
}

fn small(text: Scalar<'_>) -> Result<u32, String> {
    let number = integer(text)?;
    u32::try_from(number).map_err(|_| format!("{number} is too large: at most {}", u32::MAX))
}
