//! Limits that requests bring along, made once each and kept for a while.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::algorithm::Invalid;
use crate::envoy::{Kind, RateLimit, Unit};
use crate::strategy::FailurePolicy;

/// How many are kept. A deployment has a handful; a caller that sends more pays for making them.
const MOST: usize = 1024;

/// One worker's.
#[derive(Debug, Default)]
pub(super) struct Given(Mutex<HashMap<(u32, Unit), Arc<RateLimit>>>);

impl Given {
    /// The limit of these numbers: a fixed window, as the reference counts it.
    pub(super) fn limit(&self, requests_per_unit: u32, unit: Unit) -> Result<Arc<RateLimit>, Invalid> {
        let mut known = self.0.lock();
        if let Some(limit) = known.get(&(requests_per_unit, unit)) {
            return Ok(Arc::clone(limit));
        }
        let kind = Kind::FixedWindow { count_rejected: false };
        let limit = RateLimit::new(requests_per_unit, unit, 1, kind, FailurePolicy::Error)?;
        let limit = Arc::new(limit);
        if known.len() == MOST {
            known.clear();
        }
        known.insert((requests_per_unit, unit), Arc::clone(&limit));
        Ok(limit)
    }
}
