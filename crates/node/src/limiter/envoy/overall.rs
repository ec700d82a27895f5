//! The answer over all descriptors.

use super::{DescriptorStatus, EnvoyRules};

/// Over all descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overall {
    /// Whether the request must not pass.
    pub over: bool,
    /// Whether it would have been over but for the global shadow mode.
    pub shadowed: bool,
}

impl Overall {
    /// Over as soon as one descriptor is, but those in quota mode only together: they are groups of one
    /// budget each, and it is enough that one of them has room. What is unlimited has no budget, and so is
    /// no such room.
    pub(super) fn of(rules: &EnvoyRules, statuses: &[DescriptorStatus<'_>]) -> Self {
        let is_quota = |status: &&DescriptorStatus<'_>| status.quota_mode;
        let alone = statuses.iter().any(|status| !is_quota(&status) && status.is_over());
        let mut quota = statuses.iter().filter(is_quota).peekable();
        let together = quota.peek().is_some() && quota.all(DescriptorStatus::is_over);
        let over = alone || together;
        Self { over: over && !rules.shadow_mode, shadowed: over && rules.shadow_mode }
    }
}
