//! The last resolution: consecutive questions mostly name the same resource and strategy.

use weir_core::strategy::Resolved;

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

/// True if both texts are equal. Pointers are compared first, because they mostly match. Empty texts are not
/// compared: some C libraries are slow even for 0 bytes.
#[inline]
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && (one.is_empty() || one.as_ptr() == other.as_ptr() || one == other)
}
