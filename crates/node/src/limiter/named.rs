//! The last resolution: consecutive questions mostly name the same resource and strategy.

use weir_core::strategy::Resolved;

use crate::access::is_same;

/// Cache of the last resolution: consecutive questions mostly name the same resource and strategy.
pub(super) struct Named<'a, 'q> {
    pub(super) resource: &'q str,
    pub(super) strategy: &'q str,
    pub(super) resolved: Resolved<'a>,
}

impl Named<'_, '_> {
    #[inline]
    pub(super) fn is_of(&self, resource: &str, strategy: &str) -> bool {
        is_same(self.resource, resource) && is_same(self.strategy, strategy)
    }
}
