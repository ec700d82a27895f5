//! The one place where an error becomes a gRPC status.
//!
//! What the caller reads here is not what the log says: a store's own words (addresses, server
//! errors) stay inside; the caller learns the kind of failure and what can be done about it.

use tonic::Status;
use weir_store::StoreError;

use super::wire::Malformed;
use crate::leases::LeaseError;
use crate::limiter::LimiterError;
use crate::queues::QueueFailure;

pub(super) fn of(error: impl Into<LimiterError>) -> Status {
    match error.into() {
        LimiterError::Invalid(invalid) => Status::invalid_argument(invalid.to_string()),
        LimiterError::Incomplete(what) => Status::invalid_argument(what),
        LimiterError::Unknown(unknown) => Status::not_found(unknown.to_string()),
        LimiterError::Unsupported(why) => Status::failed_precondition(why),
        error @ LimiterError::OtherCost(_) => Status::already_exists(error.to_string()),
        LimiterError::NotDone(StoreError::Unsupported(why)) => Status::failed_precondition(why),
        LimiterError::NotCounted(StoreError::Unsupported(why)) => Status::failed_precondition(why),
        LimiterError::NotCounted(error) => {
            Status::unavailable(format!("the store could not count ({}); try again later", error.kind()))
        }
        LimiterError::NotDone(StoreError::OtherCost(known)) => of(LimiterError::OtherCost(known)),
        LimiterError::NotDone(error) => Status::unavailable(format!(
            "the store could not do it ({}), or its answer was lost; try again later, under the same id",
            error.kind()
        )),
        LimiterError::Store { whose, error } => Status::unavailable(format!(
            "the store could not decide ({}); try again later, or set `on_store_failure` of {whose} to allow \
             or deny, which answers without the store",
            error.kind()
        )),
    }
}

/// Of a call about a lease.
pub(super) fn of_lease(error: LeaseError) -> Status {
    match error {
        LeaseError::Question(error) => of(error),
        LeaseError::OtherWeight { .. } => Status::already_exists(error.to_string()),
        LeaseError::NotDone(error) => Status::unavailable(format!(
            "the store could not do it ({}), or its answer was lost; the same call can be made again",
            error.kind()
        )),
    }
}

/// Of a call about a queue.
pub(super) fn of_queue(error: QueueFailure) -> Status {
    match error {
        QueueFailure::Invalid(_) => Status::invalid_argument(error.to_string()),
        QueueFailure::Unknown(_) => Status::not_found(error.to_string()),
        QueueFailure::Unsupported(why) => Status::failed_precondition(why),
        QueueFailure::TooManyWait(_) => Status::resource_exhausted(error.to_string()),
        QueueFailure::Store(error) => Status::unavailable(format!(
            "the store could not do it ({}), or its answer was lost; items that are put under ids can be put again",
            error.kind()
        )),
    }
}

/// A message that does not parse is INTERNAL, not INVALID_ARGUMENT: that is gRPC's convention.
pub(super) fn malformed(malformed: Malformed) -> Status {
    Status::internal(malformed.to_string())
}
