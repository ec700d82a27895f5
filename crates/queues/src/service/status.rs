//! The mapping of errors of queues to gRPC statuses.

use tonic::Status;
pub(super) use weir_node::service::status::invalid;
use weir_node::service::status::{other_contents, refused, rejected, unknown, unsupported, without_store};
use weir_node::telemetry::RejectedKind;

use crate::calls::QueueFailure;

/// Returns the status for an error of a queue.
pub(super) fn new(error: QueueFailure) -> Status {
    match error {
        QueueFailure::Refused(error) => refused(error),
        QueueFailure::Invalid(field) => invalid(&field),
        QueueFailure::Unknown(queue) => {
            rejected(RejectedKind::UnknownQueue, "queue", &queue);
            unknown("UNKNOWN_QUEUE", ("queue", &queue.name), queue.to_string())
        }
        QueueFailure::Unsupported(why) => unsupported(why),
        QueueFailure::OtherPayload(_) => other_contents(error.to_string()),
        QueueFailure::TooManyWait(_) => Status::resource_exhausted(error.to_string()),
        QueueFailure::Store(error) => without_store(&error, |kind| {
            format!(
                "the store could not do it ({kind}), or its answer was lost; items that are put under ids can be put \
                 again"
            )
        }),
    }
}
