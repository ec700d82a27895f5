//! Reads `envoy.rules`.

use weir_config::SectionReader;

use crate::overlay::{
    EnvoyOverlay, MAX_ENVOY_TEXT, MAX_RULES, OverlayAlgorithm, OverlayRule, RuleChange, RulePattern,
};

/// The longest path of a rule.
pub(super) const MAX_PATH: usize = 64 << 10;

pub(super) const ALGORITHMS: [(&str, OverlayAlgorithm); 7] = [
    ("fixed_window", OverlayAlgorithm::FixedWindow),
    ("sliding_window", OverlayAlgorithm::SlidingWindow),
    ("sliding_log", OverlayAlgorithm::SlidingLog),
    ("token_bucket", OverlayAlgorithm::Bucket),
    ("gcra", OverlayAlgorithm::Bucket),
    ("leaky_bucket", OverlayAlgorithm::Bucket),
    ("interval_refill", OverlayAlgorithm::IntervalRefill),
];

/// Reads the list of a section.
pub(super) fn read(section: &mut SectionReader<'_, '_>, key: &'static str) -> EnvoyOverlay {
    let mut rules: Vec<OverlayRule> = Vec::new();
    section.items(key, MAX_RULES, |item| {
        let Some(rule) = one(item) else { return };
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
            item.report_here(reason);
        }
        rules.push(rule);
    });
    EnvoyOverlay::new(rules)
}

fn one(item: &mut SectionReader<'_, '_>) -> Option<OverlayRule> {
    let help = ("domain", "it is the domain of the rules");
    let domain = item.needed_text(help, MAX_ENVOY_TEXT, |domain| Ok(domain.to_owned()));
    let help = ("path", "it is the label `rule` of `weir_envoy_hits_total`");
    let path = item.needed_text(help, MAX_PATH, |text| Ok((text.to_owned(), RulePattern::parse(text)?)));
    let mistakes = item.mistakes();
    let change = change(item);
    if change.keys().next().is_none() && item.is_whole() && item.mistakes() == mistakes {
        item.report_here("changes nothing; say how the rules count");
    }
    let (path, pattern) = path?;
    Some(OverlayRule { domain: domain?, path, pattern, change })
}

fn change(item: &mut SectionReader<'_, '_>) -> RuleChange {
    RuleChange {
        on_store_failure: item.failure_policy("on_store_failure"),
        approximate: item.approximate("approximate"),
        algorithm: item.word("algorithm", &ALGORITHMS),
        burst: item.small_number("burst"),
        count_rejected: item.optional_switch("count_rejected"),
        unit_multiplier: item.small_number("unit_multiplier"),
        bill: item.optional_switch("bill"),
        max_debt: item.number_or("max_debt", "unlimited"),
    }
}
