//! The place of a descriptor on its level.

/// The place of a descriptor among its siblings: its index, and so its order in the file.
pub(super) type SiblingIndex = usize;
