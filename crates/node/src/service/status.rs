//! The mapping of errors to gRPC statuses; there is no other.
//!
//! The caller does not get the text of the log: a store's own messages (addresses, server errors) stay inside. The
//! status names the kind of failure and its remedy.

mod details;

use std::fmt::Display;

use tonic::Status;
use weir_core::strategy::Unknown;
use weir_store::StoreError;

pub(crate) use self::details::details_of;
pub use self::details::unknown;
use super::wire::Malformed;
use crate::access::Refused;
use crate::current_method;
use crate::limiter::{InvalidField, LimiterError};
use crate::telemetry::{RejectedKind, log_rejected};

/// Returns the status for an error of a question.
pub fn new(error: impl Into<LimiterError>) -> Status {
    match error.into() {
        LimiterError::Refused(error) => refused(error),
        LimiterError::Invalid(field) => invalid(&field),
        LimiterError::Incomplete { field, what } => {
            rejected(RejectedKind::InvalidField, field, &what);
            details::invalid(field, what.to_owned())
        }
        LimiterError::Unknown(unknown) => {
            let (kind, reason, name) = match &unknown {
                Unknown::Strategy { name, .. } => {
                    (RejectedKind::UnknownStrategy, "UNKNOWN_STRATEGY", ("strategy", &**name))
                }
                Unknown::Resource { name, .. } => {
                    (RejectedKind::UnknownResource, "UNKNOWN_RESOURCE", ("resource", &**name))
                }
            };
            rejected(kind, name.0, &unknown);
            details::unknown(reason, name, unknown.to_string())
        }
        LimiterError::Unsupported(why) => unsupported(why),
        LimiterError::NotDone(StoreError::Unsupported(why)) => unsupported(why),
        LimiterError::NotCounted(StoreError::Unsupported(why)) => unsupported(why),
        error @ (LimiterError::IdsFull(_) | LimiterError::TooManyEnds(_)) => {
            Status::resource_exhausted(error.to_string())
        }
        error @ (LimiterError::OtherCost(_) | LimiterError::OtherContents) => {
            other_contents(error.to_string())
        }
        LimiterError::NotCounted(error) => {
            without_store(&error, |kind| format!("the store could not count ({kind}); try again later"))
        }
        LimiterError::NotDone(StoreError::OtherCost(known)) => new(LimiterError::OtherCost(known)),
        LimiterError::NotDone(StoreError::IdsFull(bytes)) => new(LimiterError::IdsFull(bytes)),
        LimiterError::NotDone(error) => without_store(&error, |kind| {
            format!(
                "the store could not do it ({kind}), or its answer was lost; try again later, under the same id"
            )
        }),
        LimiterError::Store { whose, error } => without_store(&error, |kind| {
            format!(
                "the store could not decide ({kind}); try again later, or set `on_store_failure` of {whose} to \
                 allow or deny, which answers without the store"
            )
        }),
    }
}

/// Returns the status for a refused question: the same whether or not what it names exists.
pub fn refused(Refused(reason): Refused) -> Status {
    reason.refusal().into()
}

/// Returns the status for a field that breaks its bound.
pub fn invalid(field: &InvalidField) -> Status {
    rejected(RejectedKind::InvalidField, field.field, field);
    details::invalid(field.field, field.to_string())
}

/// Returns the status for what cannot be done with this configuration.
pub fn unsupported(why: impl Into<String>) -> Status {
    let why = why.into();
    rejected(RejectedKind::Unsupported, "", &why);
    Status::failed_precondition(why)
}

/// Returns the status for an id that is known with other contents.
pub fn other_contents(text: String) -> Status {
    rejected(RejectedKind::OtherContents, "id", &text);
    Status::already_exists(text)
}

/// Counts and logs the request of the method that is served.
pub fn rejected(kind: RejectedKind, field: &str, error: &dyn Display) {
    log_rejected(kind, current_method::get(), field, error);
}

/// Returns the status for a call that another node, or this one later, can serve.
pub fn busy(text: String) -> Status {
    details::unavailable("BUSY", "busy", text)
}

/// Returns the status for a failure of the store, with a text about its kind.
pub fn without_store(error: &StoreError, text: impl FnOnce(&str) -> String) -> Status {
    details::unavailable("STORE_UNAVAILABLE", error.kind(), text(error.kind()))
}

/// Returns INTERNAL, not INVALID_ARGUMENT, for a message that does not parse: that is gRPC's convention.
pub fn malformed(malformed: Malformed) -> Status {
    rejected(RejectedKind::Malformed, "", &malformed);
    Status::internal(malformed.to_string())
}
