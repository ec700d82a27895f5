//! Outcomes of questions that are not put to the store.

use weir_core::strategy::Listed;

use crate::guard::BanHit;

/// What decides a question without the store.
#[derive(Clone, Copy)]
pub(super) enum UnaskedOutcome {
    /// An access list.
    Listed(Listed),
    /// A ban.
    Banned(BanHit),
}
