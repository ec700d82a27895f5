//! `envoy.all_or_none`: domains whose descriptors are charged together, all of them or none.

use std::sync::Arc;

use weir_core::algorithm::Algorithm;
use weir_core::envoy::Draft;
use weir_core::strategy::FailurePolicy;

use super::errors::MistakeReport;
use super::fields::{Mapping, NamedNode};
use super::overlay::MAX_ENVOY_TEXT;
use super::values::{quote, text_within};

/// The largest number of domains.
pub(super) const MAX_DOMAINS: usize = 1000;

/// The largest number of keys of `by`.
pub(super) const MAX_BY: usize = 8;

/// The setting, for messages.
const SETTING: &str = "envoy.all_or_none";

/// The domains by name, and the entries by which their descriptors belong together. Clones share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllOrNone(Arc<[(String, Vec<String>)]>);

impl AllOrNone {
    /// The keys of the entries whose values descriptors of this domain have in common that are decided together. None, if
    /// each is decided alone.
    #[must_use]
    pub fn by(&self, domain: &str) -> Option<&[String]> {
        let found = self.0.binary_search_by(|(name, _)| name.as_str().cmp(domain)).ok()?;
        self.0.get(found).map(|(_, by)| &by[..])
    }

    /// True if it names no domain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses a rule of a domain that it names if the rule cannot be charged with others, or not at all.
    pub(super) fn check(&self, domain: &str, rule: &Draft) -> Result<(), String> {
        if self.by(domain).is_none() {
            return Ok(());
        }
        let strategy = rule.limit.as_ref().map(|limit| &**limit.strategy());
        let counts_denied =
            strategy.is_some_and(|strategy| strategy.algorithms().iter().any(Algorithm::counts_denied));
        let why = if counts_denied {
            "`count_rejected` charges denied hits, and a denied request charges nothing there"
        } else if strategy.is_some_and(|strategy| strategy.approximate().is_some()) {
            "`approximate` counts on the nodes, and limits that are charged together are counted by the store"
        } else if strategy
            .is_some_and(|strategy| matches!(strategy.on_store_failure(), FailurePolicy::Local(_)))
        {
            "`on_store_failure: local` decides each limit alone; use `allow`, `deny` or `error`"
        } else if rule.quota_mode {
            "`quota_mode` denies only with all others, so what a denial charges would depend on them"
        } else {
            return Ok(());
        };
        Err(format!("the domain is in {SETTING}, where this cannot be: {why}"))
    }
}

/// Reads the setting. `beside` are settings of the section that contradict it, if they are on.
pub(super) fn all_or_none(
    fields: &mut Mapping<'_>,
    beside: [(&'static str, bool); 3],
    report: &mut MistakeReport,
) -> AllOrNone {
    let Some(value) = fields.take("all_or_none") else { return AllOrNone::default() };
    let items = value.items(report).unwrap_or_default();
    if items.len() > MAX_DOMAINS {
        value.report(report, format!("has {} entries: at most {MAX_DOMAINS}", items.len()));
        return AllOrNone::default();
    }
    let mut domains: Vec<(String, Vec<String>)> = Vec::new();
    for item in &items {
        let Some((domain, by)) = one(item, report) else { continue };
        if domains.iter().any(|(other, _)| *other == domain) {
            item.report(report, format!("names the domain {} again", quote(&domain)));
        }
        domains.push((domain, by));
    }
    for (name, _) in beside.into_iter().filter(|(_, is_on)| *is_on && !domains.is_empty()) {
        let why = match name {
            "count_rejected" => "it charges denied hits, and a denied request charges nothing there",
            "stop_when_over" => "it looks before it charges, and both at once is what `all_or_none` does",
            _ => "a request is then denied only if all its descriptors are over",
        };
        value.report(report, format!("cannot stand beside `{name}: true`: {why}"));
    }
    domains.sort_unstable();
    AllOrNone(domains.into())
}

fn one(item: &NamedNode<'_>, report: &mut MistakeReport) -> Option<(String, Vec<String>)> {
    let mut fields = Mapping::of(item, report);
    let text = |value: NamedNode<'_>, report: &mut MistakeReport| {
        value.read(report, |text| text_within(text, MAX_ENVOY_TEXT))
    };
    let domain = fields.require("domain", "it is the domain of the descriptors", report);
    let domain = domain.and_then(|value| text(value, report));
    let by = fields.require("by", "give it the keys of entries, or [] for the whole request", report);
    let by = by.and_then(|value| {
        let items = value.items(report)?;
        if items.len() > MAX_BY {
            value.report(report, format!("has {} keys: at most {MAX_BY}", items.len()));
        }
        let mut keys: Vec<String> = Vec::new();
        for item in items {
            let key = text(item.clone(), report)?;
            if keys.contains(&key) {
                item.report(report, format!("names the key {} again", quote(&key)));
            }
            keys.push(key);
        }
        Some(keys)
    });
    fields.finish(report);
    Some((domain?, by?))
}
