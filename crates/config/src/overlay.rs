//! The overlay `envoy.rules`: what neither files of the reference nor a control plane can say of a rule.
//!
//! An entry names rules by their domain and path. It changes how they count, not what they allow.

mod change;
mod pattern;

use std::sync::Arc;

use weir_core::envoy::{Descriptor, Matcher, rule_element};

pub(super) use self::change::{OverlayAlgorithm, RuleChange};
pub(super) use self::pattern::RulePattern;

/// The section, for messages.
pub const ENVOY_RULES: &str = "envoy.rules";

/// The most entries.
pub(super) const MAX_RULES: usize = 1000;

/// Maximum length of a key, value, name or domain of Envoy's limits, in bytes.
pub const MAX_ENVOY_TEXT: usize = 4096;

/// The overlay. Clones share it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnvoyOverlay(Arc<[OverlayRule]>);

/// One entry.
#[derive(Debug, PartialEq)]
pub(super) struct OverlayRule {
    pub(super) domain: String,
    /// As it is written.
    pub(super) path: String,
    pub(super) pattern: RulePattern,
    pub(super) change: RuleChange,
}

/// What an overlay did to a set of domains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OverlayReport {
    /// For each mistake its domain and a line about it.
    pub mistakes: Vec<(String, String)>,
    /// A line for each entry that matches no rule.
    pub unmatched: Vec<String>,
}

impl EnvoyOverlay {
    /// The overlay of these entries, of which one is more specific than the other where two meet.
    pub(super) fn new(rules: Vec<OverlayRule>) -> Self {
        Self(rules.into())
    }

    /// True if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Changes the rules of `domains`.
    pub fn apply(&self, domains: &mut [(String, Vec<Descriptor>)]) -> OverlayReport {
        let mut report = OverlayReport::default();
        if self.is_empty() {
            return report;
        }
        let mut matched = vec![false; self.0.len()];
        for (domain, descriptors) in domains {
            let entries: Vec<usize> =
                (0..self.0.len()).filter(|index| self.0[*index].domain == *domain).collect();
            let mut walk = OverlayWalk { overlay: self, entries, matched: &mut matched, path: Vec::new() };
            let mut mistakes = Vec::new();
            walk.level(descriptors, &mut mistakes);
            let line = |reason| (domain.clone(), format!("domain {}, rule {reason}", shown(domain)));
            report.mistakes.extend(mistakes.into_iter().map(line));
        }
        let unmatched = self.0.iter().zip(matched).filter(|(_, matched)| !matched);
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

/// A walk through the rules of one domain.
struct OverlayWalk<'o> {
    overlay: &'o EnvoyOverlay,
    /// The entries for the domain.
    entries: Vec<usize>,
    matched: &'o mut [bool],
    /// The elements that lead here.
    path: Vec<String>,
}

impl OverlayWalk<'_> {
    /// The reader of the descriptors bounds how deep they nest.
    fn level(&mut self, descriptors: &mut [Descriptor], mistakes: &mut Vec<String>) {
        if self.entries.is_empty() {
            return;
        }
        for descriptor in descriptors {
            let value = (descriptor.matcher != Matcher::Any).then(|| descriptor.matcher.text());
            self.path.push(rule_element(&descriptor.key, value.as_deref()));
            if let Some(entry) = descriptor.rule.is_some().then(|| self.best()).flatten() {
                let rule = &self.overlay.0[entry];
                if let Some(Err(reason)) = descriptor.rule.as_mut().map(|draft| rule.change.apply(draft)) {
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
            let pattern = &self.overlay.0[entry].pattern;
            if !pattern.matches(&self.path) {
                continue;
            }
            self.matched[entry] = true;
            let is_better = |other: usize| pattern.is_within(&self.overlay.0[other].pattern);
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
