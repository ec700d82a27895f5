//! The messages of the suite, as far as unary calls need them: `connectrpc.conformance.v1`.

use prost::{Message, Oneof};
use prost_types::Any;

/// The server that the suite asks for.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ServerCompatRequest {
    #[prost(bool, tag = "4")]
    pub(crate) use_tls: bool,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) client_tls_cert: Vec<u8>,
    #[prost(uint32, tag = "6")]
    pub(crate) message_receive_limit: u32,
    #[prost(message, optional, tag = "7")]
    pub(crate) server_creds: Option<TlsCreds>,
}

/// A certificate and its key.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TlsCreds {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) cert: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) key: Vec<u8>,
}

/// The address of the server.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ServerCompatResponse {
    #[prost(string, tag = "1")]
    pub(crate) host: String,
    #[prost(uint32, tag = "2")]
    pub(crate) port: u32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) pem_cert: Vec<u8>,
}

/// A request of both methods.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct UnaryRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) response_definition: Option<UnaryResponseDefinition>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) request_data: Vec<u8>,
}

/// The answer that is wanted.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct UnaryResponseDefinition {
    #[prost(message, repeated, tag = "1")]
    pub(crate) response_headers: Vec<Header>,
    #[prost(oneof = "WantedResponse", tags = "2, 3")]
    pub(crate) response: Option<WantedResponse>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) response_trailers: Vec<Header>,
    #[prost(uint32, tag = "6")]
    pub(crate) response_delay_ms: u32,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum WantedResponse {
    #[prost(bytes = "vec", tag = "2")]
    Data(Vec<u8>),
    #[prost(message, tag = "3")]
    Error(WantedError),
}

/// The error that is wanted.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct WantedError {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, optional, tag = "2")]
    pub(crate) message: Option<String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Header {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UnaryResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) payload: Option<Payload>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Payload {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) data: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub(crate) request_info: Option<RequestInfo>,
}

/// The request as the server saw it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestInfo {
    #[prost(message, repeated, tag = "1")]
    pub(crate) request_headers: Vec<Header>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) timeout_ms: Option<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) requests: Vec<Any>,
}
