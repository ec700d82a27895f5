//! Limits that requests bring along, made once each and kept for a while.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::rules::{Kind, RateLimit, Unit};
use weir_core::algorithm::Invalid;
use weir_core::strategy::{FailurePolicy, Owner};
use weir_node::limiter::InvalidField;

/// The most limits that are kept. A deployment has a handful; a caller that sends more pays for making them.
const MOST: usize = 1024;

/// One worker's, by the address of their owner and by their numbers. A limit keeps its owner, so that no other one has
/// its address.
#[derive(Debug, Default)]
pub(super) struct Given(Mutex<HashMap<(usize, u32, Unit), Arc<RateLimit>>>);

impl Given {
    /// The limit of these numbers in the domain of `owner`: a fixed window, as the reference counts it. `count_rejected`
    /// is the same for the life of the worker.
    pub(super) fn limit(
        &self,
        owner: &Arc<Owner>,
        requests_per_unit: u32,
        unit: Unit,
        count_rejected: bool,
    ) -> Result<Arc<RateLimit>, Invalid> {
        let question = (Arc::as_ptr(owner).addr(), requests_per_unit, unit);
        let mut known = self.0.lock();
        if let Some(limit) = known.get(&question) {
            return Ok(Arc::clone(limit));
        }
        let kind = Kind::FixedWindow { count_rejected };
        let limit = RateLimit::new(requests_per_unit, unit, 1, kind, FailurePolicy::Error)?;
        let limit = Arc::new(limit.owned_by(owner));
        if known.len() == MOST {
            known.clear();
        }
        known.insert(question, Arc::clone(&limit));
        Ok(limit)
    }
}

/// The unit of a limit that a request brings along.
pub(super) fn unit(number: i32) -> Result<Unit, InvalidField> {
    Unit::of_wire(number).ok_or_else(|| InvalidField {
        field: "descriptors.limit.unit",
        value: number.to_string(),
        bound: "it must be SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5), YEAR (6) or WEEK (7)"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_belongs_to_its_domain() {
        let (given, owners) = (Given::default(), ["a", "b"].map(|name| Arc::new(Owner::of_domain(name))));
        let limits =
            [0, 1, 0].map(|owner: usize| given.limit(&owners[owner], 5, Unit::Minute, false).unwrap());
        let names = limits.each_ref().map(|limit| limit.strategy().owner().name().to_owned());
        assert_eq!(names, ["domain:a", "domain:b", "domain:a"]);
        assert!(Arc::ptr_eq(&limits[0], &limits[2]), "it is made once");
    }
}
