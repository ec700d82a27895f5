//! Codes of errors: their names in Connect, and the status of each.

use http::StatusCode;

/// The codes that this crate itself answers with.
pub(crate) const CANCELED: u8 = 1;
pub(crate) const INVALID_ARGUMENT: u8 = 3;
pub(crate) const DEADLINE_EXCEEDED: u8 = 4;
pub(crate) const PERMISSION_DENIED: u8 = 7;
pub(crate) const RESOURCE_EXHAUSTED: u8 = 8;
pub(crate) const UNIMPLEMENTED: u8 = 12;
pub(crate) const INTERNAL: u8 = 13;
pub(crate) const UNAVAILABLE: u8 = 14;
pub(crate) const UNAUTHENTICATED: u8 = 16;

/// The name and the status of each code, by its number in gRPC less one.
const CODES: [(&str, StatusCode); 16] = [
    ("canceled", status(499)),
    ("unknown", StatusCode::INTERNAL_SERVER_ERROR),
    ("invalid_argument", StatusCode::BAD_REQUEST),
    ("deadline_exceeded", StatusCode::GATEWAY_TIMEOUT),
    ("not_found", StatusCode::NOT_FOUND),
    ("already_exists", StatusCode::CONFLICT),
    ("permission_denied", StatusCode::FORBIDDEN),
    ("resource_exhausted", StatusCode::TOO_MANY_REQUESTS),
    ("failed_precondition", StatusCode::BAD_REQUEST),
    ("aborted", StatusCode::CONFLICT),
    ("out_of_range", StatusCode::BAD_REQUEST),
    ("unimplemented", StatusCode::NOT_IMPLEMENTED),
    ("internal", StatusCode::INTERNAL_SERVER_ERROR),
    ("unavailable", StatusCode::SERVICE_UNAVAILABLE),
    ("data_loss", StatusCode::INTERNAL_SERVER_ERROR),
    ("unauthenticated", StatusCode::UNAUTHORIZED),
];

const fn status(code: u16) -> StatusCode {
    match StatusCode::from_u16(code) {
        Ok(status) => status,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns the name and the status of a code.
pub(crate) fn code(number: u8) -> (&'static str, StatusCode) {
    let known = usize::from(number).checked_sub(1).and_then(|index| CODES.get(index));
    *known.unwrap_or(&CODES[1])
}
