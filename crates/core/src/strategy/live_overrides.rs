//! Overrides of live control of one strategy. There may be many, and they change one by one, so snapshots share them.

use std::sync::Arc;

use super::shared_patterns::SharedPatterns;
use super::{Pattern, Strategy};

/// The pattern of all resources.
const ALL: &str = "*";

#[derive(Debug, Clone, Default)]
pub(super) struct LiveOverrides {
    by_consumer: SharedPatterns<OfConsumer>,
    /// Number of overrides for some resources only.
    partial: usize,
}

#[derive(Debug, Clone, Default)]
struct OfConsumer {
    /// The one for all resources, as most are: it needs no table.
    all: Option<Arc<Strategy>>,
    others: Option<Arc<SharedPatterns<Arc<Strategy>>>>,
}

impl LiveOverrides {
    /// Adds an override, in place of one for the same consumers and resources.
    pub(super) fn insert(&mut self, consumer: &str, resource: &str, strategy: Arc<Strategy>) {
        let mut of = self.by_consumer.get(consumer).cloned().unwrap_or_default();
        if resource == ALL {
            of.all = Some(strategy);
        } else {
            let others = Arc::make_mut(of.others.get_or_insert_default());
            self.partial += usize::from(others.insert(resource, strategy));
        }
        self.by_consumer.insert(consumer, of);
    }

    pub(super) fn remove(&mut self, consumer: &str, resource: &str) {
        let Some(mut of) = self.by_consumer.get(consumer).cloned() else { return };
        if resource == ALL {
            of.all = None;
        } else if let Some(others) = &mut of.others {
            let others = Arc::make_mut(others);
            self.partial -= usize::from(others.remove(resource)).min(self.partial);
            if others.is_empty() {
                of.others = None;
            }
        }
        if of.all.is_none() && of.others.is_none() {
            self.by_consumer.remove(consumer);
        } else {
            self.by_consumer.insert(consumer, of);
        }
    }

    pub(super) fn has_partial(&self) -> bool {
        self.partial > 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_consumer.is_empty()
    }

    /// The override for `consumer` on `resource`: the most specific one, first by consumer and then by resource. Returns its
    /// patterns of both, and the strategy that decides.
    pub(super) fn find(
        &self,
        consumer: &str,
        resource: &str,
    ) -> Option<(Pattern<'_>, Pattern<'_>, &Arc<Strategy>)> {
        self.by_consumer.matches(consumer).find_map(|(consumer, of)| {
            let (resource, strategy) = of.find(resource)?;
            Some((consumer, resource, strategy))
        })
    }

    /// All overrides: consumer, resource, and the strategy that decides. In no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Pattern<'_>, Pattern<'_>, &Arc<Strategy>)> {
        self.by_consumer.iter().flat_map(|(consumer, of)| {
            let others = of.others.iter().flat_map(|others| others.iter());
            let all = of.all.iter().map(|strategy| (Pattern::prefix(""), strategy));
            all.chain(others).map(move |(resource, strategy)| (consumer, resource, strategy))
        })
    }

    pub(super) fn mean_the_same(&self, other: &Self) -> bool {
        let same = |(consumer, resource, strategy): (Pattern<'_>, Pattern<'_>, &Arc<Strategy>)| {
            let theirs = other.get(&consumer.to_string(), &resource.to_string());
            theirs.is_some_and(|theirs| Arc::ptr_eq(theirs, strategy) || theirs.means_the_same(strategy))
        };
        self.iter().count() == other.iter().count() && self.iter().all(same)
    }

    fn get(&self, consumer: &str, resource: &str) -> Option<&Arc<Strategy>> {
        let of = self.by_consumer.get(consumer)?;
        if resource == ALL { of.all.as_ref() } else { of.others.as_ref()?.get(resource) }
    }
}

impl OfConsumer {
    fn find(&self, resource: &str) -> Option<(Pattern<'_>, &Arc<Strategy>)> {
        let found = self.others.as_ref().and_then(|others| others.find(resource));
        found.or_else(|| Some((Pattern::prefix(""), self.all.as_ref()?)))
    }
}
