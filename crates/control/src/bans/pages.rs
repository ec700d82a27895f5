//! Pages of bans, in the order of their names.

use std::sync::Arc;

use super::banned::{BannedCaller, BannedUntil};
use crate::model::BanSet;

/// The bans of a time, from a name on.
pub struct BanPages {
    pub(crate) bans: Arc<BanSet>,
    pub(crate) now: u64,
    pub(crate) after: String,
}

impl BanPages {
    /// Number of bans that this node knows, some of which may have just ended.
    #[must_use]
    pub fn total(&self) -> usize {
        self.bans.len()
    }

    /// The bans in force after the name, each with its own name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, BannedUntil)> {
        let living = self.bans.after(&self.after).filter(|(_, until)| *until > self.now);
        living.filter_map(|(member, until)| {
            Some((member, BannedUntil { caller: BannedCaller::read(member)?, until }))
        })
    }
}
