//! HTTP/2 as far as both ends of a connection need it: frames (RFC 9113) and header blocks (RFC 7541).

pub(crate) mod frames;
pub(crate) mod hpack;
