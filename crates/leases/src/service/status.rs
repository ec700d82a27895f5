//! The mapping of errors of leases to gRPC statuses.

use tonic::Status;
pub(super) use weir_node::service::status::invalid;
use weir_node::service::status::{new as of_question, other_contents, without_store};

use crate::calls::LeaseError;

/// Returns the status for an error of a lease.
pub(super) fn new(error: LeaseError) -> Status {
    match error {
        LeaseError::Question(error) => of_question(error),
        LeaseError::OtherWeight { .. } => other_contents(error.to_string()),
        LeaseError::NotDone(error) => without_store(&error, |kind| {
            format!(
                "the store could not do it ({kind}), or its answer was lost; the same call can be made again"
            )
        }),
    }
}
