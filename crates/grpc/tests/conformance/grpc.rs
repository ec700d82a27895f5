//! gRPC over HTTP/2, by the parts of its specification (`PROTOCOL-HTTP2` of the gRPC project).

mod messages;
mod requests;
mod responses;

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    [requests::cases(), messages::cases(), responses::cases()].into_iter().flatten().collect()
}
