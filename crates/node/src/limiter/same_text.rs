//! Comparison of texts that are mostly the same bytes.

/// True if both texts are equal. Pointers are compared first, because they mostly match. Empty texts are not
/// compared: some C libraries are slow even for 0 bytes.
#[inline]
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && (one.is_empty() || one.as_ptr() == other.as_ptr() || one == other)
}
