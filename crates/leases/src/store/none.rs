//! A store that can keep no leases: every call is refused by name.

use weir_store::StoreError;

use super::{LeaseAsk, LeaseStore, LeasesAsk};
use crate::model::{LeaseAnswer, LeasePage};

/// Leases on a backend that runs no scripts and is not this process.
#[derive(Debug, Clone, Copy)]
pub struct NoLeases;

const WHY: StoreError =
    StoreError::Unsupported("the store has no leases: it runs no scripts, and is not this process");

impl LeaseStore for NoLeases {
    async fn lease(&self, _: &LeaseAsk<'_>) -> Result<LeaseAnswer, StoreError> {
        Err(WHY)
    }

    async fn leases(&self, _: &LeasesAsk<'_>) -> Result<LeasePage, StoreError> {
        Err(WHY)
    }
}
