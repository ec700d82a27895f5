//! The overlay `envoy.rules`: what neither files of the reference nor a control plane can say of a rule.
//!
//! An entry names rules by their domain and path. It changes how they count, not what they allow.

mod all_or_none;
mod change;
mod pattern;

use std::sync::Arc;

use crate::rules::{Descriptor, Draft, Kind, Matcher, RateLimit, rule_element};

pub use self::all_or_none::AllOrNone;
pub(crate) use self::change::{OverlayAlgorithm, RuleChange};
pub(crate) use self::pattern::RulePattern;

/// The section, for messages.
pub const ENVOY_RULES: &str = "envoy.rules";

/// The largest number of domains of `envoy.all_or_none`.
pub(crate) const MAX_DOMAINS: usize = 1000;

/// The largest number of keys of its `by`.
pub(crate) const MAX_BY: usize = 8;

/// The most entries.
pub(crate) const MAX_RULES: usize = 1000;

/// Maximum length of a key, value, name or domain of Envoy's limits, in bytes.
pub const MAX_ENVOY_TEXT: usize = 4096;

/// The overlay. Clones share it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnvoyOverlay {
    rules: Arc<[OverlayRule]>,
    /// True if rules charge denied hits unless they or their entry say otherwise.
    count_rejected: bool,
    /// Domains whose rules are charged together.
    all_or_none: AllOrNone,
}

/// One entry.
#[derive(Debug, PartialEq)]
pub(crate) struct OverlayRule {
    pub(crate) domain: String,
    /// As it is written.
    pub(crate) path: String,
    pub(crate) pattern: RulePattern,
    pub(crate) change: RuleChange,
}

/// Effects of an overlay on a set of domains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OverlayReport {
    /// For each mistake its domain and a line about it.
    pub mistakes: Vec<(String, String)>,
    /// A line for each entry that matches no rule.
    pub unmatched: Vec<String>,
}

impl EnvoyOverlay {
    /// The overlay of these entries, of which one is more specific than the other where two meet.
    pub(crate) fn new(rules: Vec<OverlayRule>) -> Self {
        Self { rules: rules.into(), ..Self::default() }
    }

    /// The same entries; rules that say nothing of it charge denied hits, or not.
    #[must_use]
    pub fn counting_rejected(self, count_rejected: bool) -> Self {
        Self { count_rejected, ..self }
    }

    /// The same entries; rules that cannot be charged together in these domains are refused.
    #[must_use]
    pub fn all_or_none(self, all_or_none: AllOrNone) -> Self {
        Self { all_or_none, ..self }
    }

    /// True if it neither changes nor refuses a rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.count_rejected && self.all_or_none.is_empty()
    }

    /// Changes the rules of `domains`.
    pub fn apply(&self, domains: &mut [(String, Vec<Descriptor>)]) -> OverlayReport {
        let mut report = OverlayReport::default();
        if self.is_empty() {
            return report;
        }
        let mut matched = vec![false; self.rules.len()];
        for (domain, descriptors) in domains {
            let entries: Vec<usize> =
                (0..self.rules.len()).filter(|index| self.rules[*index].domain == *domain).collect();
            let mut walk =
                OverlayWalk { overlay: self, domain, entries, matched: &mut matched, path: Vec::new() };
            let mut mistakes = Vec::new();
            walk.level(descriptors, &mut mistakes);
            let line = |reason| (domain.clone(), format!("domain {}, rule {reason}", shown(domain)));
            report.mistakes.extend(mistakes.into_iter().map(line));
        }
        let unmatched = self.rules.iter().zip(matched).filter(|(_, matched)| !matched);
        let line = |entry: &OverlayRule| {
            format!(
                "{ENVOY_RULES}: {} of the domain {} matches no rule",
                shown(&entry.path),
                shown(&entry.domain)
            )
        };
        report.unmatched = unmatched.map(|(entry, _)| line(entry)).collect();
        report
    }
}

impl EnvoyOverlay {
    /// Changes a rule by its entry, if it has one, and by what is said of all rules.
    fn change(&self, domain: &str, entry: Option<RuleChange>, draft: &mut Draft) -> Result<(), String> {
        self.count(entry, draft)?;
        self.all_or_none.check(domain, draft)
    }

    fn count(&self, entry: Option<RuleChange>, draft: &mut Draft) -> Result<(), String> {
        if let Some(change) = &entry {
            change.apply(draft)?;
        }
        let says = |change: &RuleChange| change.count_rejected.is_some() || change.approximate.is_some();
        if !self.count_rejected || entry.as_ref().is_some_and(says) {
            return Ok(());
        }
        let can_count = |limit: &RateLimit| {
            matches!(limit.kind(), Kind::FixedWindow { .. } | Kind::SlidingLog { .. })
                && !draft.given.contains(&"count_rejected")
        };
        if draft.limit.as_ref().is_some_and(can_count) {
            RuleChange { count_rejected: Some(true), ..RuleChange::default() }.apply(draft)?;
        }
        Ok(())
    }
}

/// A walk through the rules of one domain.
struct OverlayWalk<'o> {
    overlay: &'o EnvoyOverlay,
    domain: &'o str,
    /// The entries for the domain.
    entries: Vec<usize>,
    matched: &'o mut [bool],
    /// The elements that lead here.
    path: Vec<String>,
}

impl OverlayWalk<'_> {
    /// The reader of the descriptors bounds how deep they nest.
    fn level(&mut self, descriptors: &mut [Descriptor], mistakes: &mut Vec<String>) {
        let is_checked = self.overlay.all_or_none.by(self.domain).is_some();
        if self.entries.is_empty() && !self.overlay.count_rejected && !is_checked {
            return;
        }
        for descriptor in descriptors {
            let value = (descriptor.matcher != Matcher::Any).then(|| descriptor.matcher.text());
            self.path.push(rule_element(&descriptor.key, value.as_deref()));
            if descriptor.rule.is_some() {
                let entry = self.best();
                let change = entry.map(|entry| self.overlay.rules[entry].change);
                let draft = descriptor.rule.as_mut();
                let changed = draft.map(|draft| self.overlay.change(self.domain, change, draft));
                if let Some(Err(reason)) = changed {
                    mistakes.push(format!("`{}`: {reason}", self.path.join(",")));
                }
            }
            self.level(&mut descriptor.descriptors, mistakes);
            self.path.pop();
        }
    }

    /// The most specific entry that matches. The reader refuses entries of which neither is more specific.
    fn best(&mut self) -> Option<usize> {
        let mut best: Option<usize> = None;
        for &entry in &self.entries {
            let pattern = &self.overlay.rules[entry].pattern;
            if !pattern.matches(&self.path) {
                continue;
            }
            self.matched[entry] = true;
            let is_better = |other: usize| pattern.is_within(&self.overlay.rules[other].pattern);
            if best.is_none_or(is_better) {
                best = Some(entry);
            }
        }
        best
    }
}

/// A text in quotes, as messages show it.
fn shown(text: &str) -> String {
    const SHOWN: usize = 64;
    match text.char_indices().nth(SHOWN) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
    }
}
