//! Outcomes of questions that are not put to the store.

use weir_core::strategy::Listed;

use crate::guard::BanHit;

/// The reason why a question is decided without the store.
#[derive(Clone, Copy)]
pub(super) enum ShortCircuit {
    Listed(Listed),
    Banned(BanHit),
}
