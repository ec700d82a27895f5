//! `envoy.all_or_none`: domains whose descriptors are charged together, all of them or none.

use std::sync::Arc;

use crate::rules::Draft;
use weir_core::algorithm::Algorithm;
use weir_core::strategy::FailurePolicy;

/// The setting, for messages.
const SETTING: &str = "envoy.all_or_none";

/// The domains by name, and the entries by which their descriptors belong together. Clones share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllOrNone(Arc<[(String, Vec<String>)]>);

impl AllOrNone {
    /// Creates the list of `domains`, each of which is named once.
    pub(crate) fn new(mut domains: Vec<(String, Vec<String>)>) -> Self {
        domains.sort_unstable();
        Self(domains.into())
    }

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
