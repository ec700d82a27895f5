//! The answer over all descriptors.

use super::DescriptorStatus;
use crate::settings::EnvoyConfig;

/// Over all descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overall {
    /// True if the request must not pass.
    pub over: bool,
    /// True if only the global shadow mode let the request pass.
    pub shadowed: bool,
}

impl Overall {
    /// Over as soon as one descriptor is. Descriptors in quota mode count as over only if all of them are: each is a
    /// group with a budget of its own, and one with room is enough. An unlimited descriptor has no budget, so it is
    /// not such room.
    pub(super) fn new(config: &EnvoyConfig, statuses: &[DescriptorStatus<'_>]) -> Self {
        let (mut alone, mut with_quota, mut with_room) = (false, false, false);
        for status in statuses {
            alone |= !status.quota_mode && status.is_over();
            with_quota |= status.quota_mode;
            with_room |= status.quota_mode && !status.is_over();
        }
        let over = alone || with_quota && !with_room;
        Self { over: over && !config.shadow_mode, shadowed: over && config.shadow_mode }
    }
}
