//! Error details for programs: messages of `google.rpc`, in `grpc-status-details-bin`.
//!
//! INVALID_ARGUMENT has a BadRequest with the field, NOT_FOUND an ErrorInfo with the unknown name, and UNAVAILABLE
//! an ErrorInfo and a RetryInfo.

use std::collections::BTreeMap;

use prost::Message;
use prost_types::{Any, Duration};
use tonic::{Code, Status};
use weir_proto::google::rpc::bad_request::FieldViolation;
use weir_proto::google::rpc::{BadRequest, ErrorInfo, RetryInfo};

/// The `domain` of every ErrorInfo.
const DOMAIN: &str = "weir.v1";

/// Delay in RetryInfo before a call that ended with UNAVAILABLE is made again. Clients with a backoff of their own
/// keep to it.
const RETRY_DELAY: Duration = Duration { seconds: 1, nanos: 0 };

#[derive(Clone, PartialEq, Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

pub(in crate::service) fn invalid(field: &str, text: String) -> Status {
    let violation = FieldViolation { field: field.to_owned(), description: text.clone() };
    let request = BadRequest { field_violations: vec![violation] };
    with_details(Code::InvalidArgument, text, vec![any("BadRequest", &request)])
}

/// Returns NOT_FOUND for a name.
pub fn unknown(reason: &str, (what, name): (&str, &str), text: String) -> Status {
    with_details(Code::NotFound, text, vec![info(reason, (what, name))])
}

/// Returns UNAVAILABLE with the kind of the failure.
pub(in crate::service) fn unavailable(reason: &str, kind: &str, text: String) -> Status {
    let retry = RetryInfo { retry_delay: Some(RETRY_DELAY) };
    with_details(Code::Unavailable, text, vec![info(reason, ("kind", kind)), any("RetryInfo", &retry)])
}

fn info(reason: &str, (key, value): (&str, &str)) -> Any {
    let metadata = BTreeMap::from([(key.to_owned(), value.to_owned())]);
    any("ErrorInfo", &ErrorInfo { reason: reason.to_owned(), domain: DOMAIN.to_owned(), metadata })
}

/// Returns the details of a status. Those that cannot be read are left out.
pub(crate) fn details_of(status: &Status) -> Vec<Any> {
    RichStatus::decode(status.details()).map(|rich| rich.details).unwrap_or_default()
}

fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/google.rpc.{name}"), value: message.encode_to_vec() }
}

fn with_details(code: Code, message: String, details: Vec<Any>) -> Status {
    let rich = RichStatus { code: code.into(), message: message.clone(), details };
    Status::with_details(code, message, rich.encode_to_vec().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(status: &Status) -> RichStatus {
        let rich = RichStatus::decode(status.details()).unwrap();
        assert_eq!((rich.code, &*rich.message), (status.code() as i32, status.message()));
        rich
    }

    #[test]
    fn a_field_that_breaks_its_bound_is_named() {
        let rich = details(&invalid("consumer", "consumer is too long".to_owned()));
        assert_eq!(rich.details[0].type_url, "type.googleapis.com/google.rpc.BadRequest");
        let request = BadRequest::decode(&rich.details[0].value[..]).unwrap();
        assert_eq!(request.field_violations[0].field, "consumer");
    }

    #[test]
    fn what_is_unknown_and_what_failed_is_named() {
        let rich = details(&unknown("UNKNOWN_QUEUE", ("queue", "jobs"), "no such queue".to_owned()));
        let info = ErrorInfo::decode(&rich.details[0].value[..]).unwrap();
        assert_eq!(
            (&*info.reason, &*info.domain, &*info.metadata["queue"]),
            ("UNKNOWN_QUEUE", DOMAIN, "jobs")
        );
        let rich = details(&unavailable("STORE", "timeout", "later".to_owned()));
        assert_eq!(rich.details.len(), 2);
        let retry = RetryInfo::decode(&rich.details[1].value[..]).unwrap();
        assert_eq!(retry.retry_delay, Some(RETRY_DELAY));
    }
}
