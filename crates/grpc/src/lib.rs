//! gRPC over HTTP/2 for servers: bytes, requests and statuses, over any `AsyncRead + AsyncWrite`.
//!
//! A general library turns each call into a request, a response and two header maps. That is several times the cost
//! of the rest of a small call. So hot methods go from bytes to bytes here, and all other calls become an
//! `http::Request` for a general router.
//!
//! * [`frames`], [`hpack`]: frames and header blocks (RFC 9113, RFC 7541).
//! * `session`: one connection without its socket. `connection`: its socket and its calls, in one task.
//! * [`HotService`]: the services behind a connection.
//! * [`Intercept`]: checks the headers of a call, and its [`Peer`], before its method begins.
//! * [`Messages`], [`Reply`], [`Call`]: gRPC's messages, answers and calls.
//!
//! The crate is independent of decisions, of state, and of the contents of messages.

mod body;
mod budget;
mod call;
mod connection;
mod current_peer;
mod deadline;
mod decaying_count;
mod error_code;
mod events;
pub mod frames;
mod framing;
pub mod hpack;
mod in_flight;
mod inflate;
mod intercept;
mod keepalive;
mod limits;
mod messages;
mod open_streams;
mod peer;
mod pending;
mod reading_time;
mod repeated_headers;
pub mod reply;
mod request_headers;
mod response_headers;
mod service;
mod session;
mod stream;
mod transport;
pub mod turn;
mod unread_request;

pub use body::{BodyFault, RequestBody};
pub use budget::{BufferBudget, HeldBytes, WorkerBudget, no_space};
pub use call::{Call, WaitingCall};
pub use connection::{ConnectionContext, ConnectionEnd, Http2Connection};
pub use current_peer::{CurrentPeer, current_connection, current_peer, with_peer};
pub use deadline::{deadline_exceeded, deadline_of};
pub use error_code::{ConnectionError, ErrorCode};
pub use events::{ConnectionEvent, ConnectionObserver, Unobserved};
pub use framing::{MessageFraming, PREFIX, check_size, take_whole};
pub use inflate::{GZIP, Inflater, unknown_encoding};
pub use intercept::{CallRefusal, Caller, CheckCalls, Intercept, KeptHeaders, RefusalCode};
pub use limits::ConnectionLimits;
pub use messages::Messages;
pub use open_streams::{OpenStream, OpenStreams, StreamBound};
pub use peer::{Peer, PeerAddress, PeerCertificate};
pub use reply::{Reply, ResponseBody};
pub use service::{
    BATCH, BegunCall, CallContext, CallKind, ConnectionCheck, HotMethod, HotService, IncomingCall, MethodId,
    Methods, PendingCall, SideStream, Unanswered,
};
pub use session::{FEW_CALLS, MESSAGE_TIMEOUT};
pub use transport::{BoxedStream, DuplexBytes};
