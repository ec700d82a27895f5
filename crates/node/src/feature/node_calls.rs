//! The calls that a feature makes: the methods of the node's gRPC services, from bytes to bytes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use weir_grpc::{CallContext, ConnectionCheck, Methods, Peer};

use super::CallError;

/// A call that has begun.
pub enum NodeCall {
    /// Answered at once.
    Answered(Result<Bytes, CallError>),
    /// Answered later. Dropping it cancels the call.
    Waiting(Pin<Box<dyn Future<Output = Result<Bytes, CallError>> + Send>>),
}

/// The unary methods of one worker, from the bytes of a message to the bytes of the answer: the functions, the bounds and the
/// table of rights are those of gRPC.
pub trait NodeCalls: Send + Sync {
    /// True if the service of this method (`/package.Service/Method`) is on, and on this port.
    fn serves(&self, method: &str) -> bool;

    /// Returns the table of methods.
    fn methods(&self) -> &Methods;

    /// Makes a call of a unary method.
    fn call(&self, method: &'static str, context: CallContext, message: Bytes) -> NodeCall;
}

/// The check of the calls of one connection.
pub struct CallsCheck {
    methods: Methods,
    check: ConnectionCheck,
}

impl CallsCheck {
    /// Begins a connection.
    pub fn new(calls: &dyn NodeCalls, peer: &Arc<Peer>) -> Self {
        let methods = calls.methods().clone();
        Self { check: methods.connected(peer), methods }
    }

    /// Returns the context of a call with these headers, without a deadline; or the refusal.
    pub fn context(&self, method: &str, headers: &HeaderMap) -> Result<CallContext, CallError> {
        let context = self.methods.context_of(&self.check, method, headers)?;
        Ok(CallContext { deadline: None, ..context })
    }

    /// Returns the largest message of a method, in bytes.
    pub fn largest_message(&self, method: &str) -> usize {
        self.methods.largest_message_of(method)
    }
}
