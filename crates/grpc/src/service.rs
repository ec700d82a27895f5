//! The interface between a connection and the services behind it.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use tokio::sync::watch;
use tonic::Status;

use crate::body::RequestBody;
use crate::call::Call;
use crate::deadline::deadline_of;
use crate::intercept::{Caller, CheckCalls, Intercept, KeptHeaders, SharedIntercept};
use crate::messages::Messages;
use crate::peer::Peer;

/// The most calls that are answered together.
pub const BATCH: usize = 16;

/// Memory of a call in bytes, measured and rounded up. Before it begins: its headers and its entry in the session.
const PENDING_BYTES: usize = 1 << 10;

/// Memory in bytes of a unary hot method, which begins at once: also its future and the buffer of its body.
pub(crate) const CALL_BYTES: usize = 3 << 10;

/// Memory in bytes of a streaming hot method.
const STREAM_BYTES: usize = 2 << 10;

/// Memory in bytes of a unary method of the general router: also its request and the futures of its route.
const ROUTED_CALL_BYTES: usize = 12 << 10;

/// The number of a hot method: its index in the list of [`Methods::new`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodId(pub u8);

/// A method that the service answers from bytes to bytes, without a general router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotMethod {
    /// The path of its calls: `/package.Service/Method`.
    pub path: &'static str,
    /// The largest message that it takes, in bytes.
    pub largest_message: usize,
    /// True if its calls may be answered together ([`BegunCall::Pending`]). Before a call of any other method
    /// begins, those before it are answered, so that calls are decided in their order.
    pub together: bool,
    /// True if its calls are streams of messages.
    pub streaming: bool,
}

/// A streaming method of the general router: its calls are counted per connection ([`crate::ConnectionLimits`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideStream {
    /// The path of its calls: `/package.Service/Method`.
    pub path: &'static str,
    /// Memory of an open call in bytes.
    pub bytes: usize,
}

/// The kind of a method, which decides how its open calls are bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// A unary hot method: its calls are not refused, because they are short.
    Hot,
    /// A unary method of the general router.
    Unary,
    /// A hot streaming method.
    Stream,
    /// A streaming method of the general router.
    SideStream,
}

impl CallKind {
    /// True for streaming methods.
    #[must_use]
    pub const fn is_stream(self) -> bool {
        matches!(self, Self::Stream | Self::SideStream)
    }
}

/// The properties of a method that its calls keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MethodTraits {
    pub(crate) largest_message: usize,
    /// True if messages are decided one by one. The general router may have such methods.
    pub(crate) by_message: bool,
    pub(crate) kind: CallKind,
    /// Memory of a call in bytes, once it has begun and before. If these differ, the call reserves the difference
    /// before it begins.
    pub(crate) bytes: usize,
    pub(crate) bytes_before: usize,
}

/// The properties of all methods, known before a call begins. Clones share them.
#[derive(Debug, Clone)]
pub struct Methods(Arc<MethodTable>);

#[derive(Debug, Clone)]
struct MethodTable {
    hot: Vec<HotMethod>,
    largest_other: usize,
    side_streams: Vec<SideStream>,
    kept_headers: Vec<HeaderName>,
    intercept: Option<SharedIntercept>,
}

impl Methods {
    /// Creates the table of the hot methods. Only the first 256 are used. Messages of all other methods may have
    /// `largest_other` bytes.
    #[must_use]
    pub fn new(hot: Vec<HotMethod>, largest_other: usize) -> Self {
        let (side_streams, kept_headers) = (Vec::new(), Vec::new());
        Self(Arc::new(MethodTable { hot, largest_other, side_streams, kept_headers, intercept: None }))
    }

    /// Returns the methods with these side streams: streaming methods of the general router.
    #[must_use]
    pub fn with_side_streams(&self, side_streams: Vec<SideStream>) -> Self {
        Self(Arc::new(MethodTable { side_streams, ..MethodTable::clone(&self.0) }))
    }

    /// Returns the methods with an interceptor that checks every call first.
    #[must_use]
    pub fn intercepted_by(&self, intercept: Arc<dyn Intercept>) -> Self {
        let kept_headers = intercept.names().to_vec();
        let intercept = Some(SharedIntercept(intercept));
        Self(Arc::new(MethodTable { kept_headers, intercept, ..MethodTable::clone(&self.0) }))
    }

    /// Begins a connection, and returns the check of its calls, if there is an interceptor.
    pub fn connected(&self, peer: &Arc<Peer>) -> ConnectionCheck {
        let intercept = self.0.intercept.as_ref();
        ConnectionCheck(intercept.map(|SharedIntercept(intercept)| intercept.connected(Arc::clone(peer))))
    }

    /// Returns the context of a call with these headers, or the interceptor's refusal. For servers that parse
    /// headers themselves.
    pub fn context_of(
        &self,
        check: &ConnectionCheck,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<CallContext, Status> {
        let kept = KeptHeaders::from_headers(headers, self.kept_headers());
        let caller = self.check(check, Some(path), None, &kept)?;
        Ok(CallContext { deadline: deadline_of(headers), caller })
    }

    /// Passes a call to its connection's check. `None` means that there is no interceptor.
    #[inline]
    pub(crate) fn check(
        &self,
        ConnectionCheck(check): &ConnectionCheck,
        path: Option<&str>,
        method: Option<MethodId>,
        headers: &KeptHeaders,
    ) -> Result<Option<Caller>, Status> {
        let Some(check) = check else { return Ok(None) };
        let path = self.hot(method).map(|method| method.path).or(path).unwrap_or_default();
        Ok(Some(check.check(path, headers)?))
    }

    #[inline]
    fn hot(&self, method: Option<MethodId>) -> Option<&HotMethod> {
        method.and_then(|MethodId(place)| self.0.hot.get(usize::from(place)))
    }

    /// Returns the hot method with this path.
    #[must_use]
    #[inline]
    pub fn find(&self, path: &[u8]) -> Option<MethodId> {
        let place = self.0.hot.iter().position(|method| method.path.as_bytes() == path)?;
        u8::try_from(place).ok().map(MethodId)
    }

    /// Returns the largest message of the method with a path, for servers that route calls themselves.
    #[must_use]
    pub fn largest_message_of(&self, path: &str) -> usize {
        self.largest_message(self.find(path.as_bytes()))
    }

    /// Returns the largest message of a hot method, or of all others.
    #[inline]
    pub(crate) fn largest_message(&self, method: Option<MethodId>) -> usize {
        self.hot(method).map_or(self.0.largest_other, |method| method.largest_message)
    }

    /// Returns the properties of a hot method, or of the method with a path.
    #[inline]
    pub(crate) fn traits_of(&self, method: Option<MethodId>, path: Option<&str>) -> MethodTraits {
        let Some(hot) = self.hot(method) else { return self.other_traits(path.unwrap_or_default()) };
        let (kind, bytes) =
            if hot.streaming { (CallKind::Stream, STREAM_BYTES) } else { (CallKind::Hot, CALL_BYTES) };
        let bytes_before = if hot.streaming { PENDING_BYTES } else { CALL_BYTES };
        MethodTraits {
            largest_message: hot.largest_message,
            by_message: hot.streaming,
            kind,
            bytes,
            bytes_before,
        }
    }

    fn other_traits(&self, path: &str) -> MethodTraits {
        let side = self.0.side_streams.iter().find(|method| method.path == path);
        let (kind, bytes) =
            side.map_or((CallKind::Unary, ROUTED_CALL_BYTES), |side| (CallKind::SideStream, side.bytes));
        MethodTraits {
            largest_message: self.0.largest_other,
            by_message: true,
            kind,
            bytes,
            bytes_before: PENDING_BYTES,
        }
    }

    /// Returns the kind of the method with a path, and the memory of its open calls in bytes. For servers that
    /// route calls themselves.
    #[must_use]
    pub fn open_call(&self, path: &str) -> (CallKind, usize) {
        let MethodTraits { kind, bytes, .. } = self.traits_of(self.find(path.as_bytes()), Some(path));
        (kind, bytes)
    }

    /// True if calls of this method may be answered together.
    #[must_use]
    #[inline]
    pub fn is_together(&self, method: Option<MethodId>) -> bool {
        self.hot(method).is_some_and(|hot| hot.together)
    }

    /// True if open calls of this method take so much memory that they reserve it before they begin.
    #[inline]
    pub(crate) fn is_admitted(&self, method: Option<MethodId>) -> bool {
        self.hot(method).is_none_or(|hot| hot.streaming)
    }

    /// Returns the names of the headers that are kept of every call, beside those that gRPC itself needs.
    pub(crate) fn kept_headers(&self) -> &[HeaderName] {
        &self.0.kept_headers
    }
}

/// The check of a connection's calls, if there is an interceptor. Clones share it.
#[derive(Clone)]
pub struct ConnectionCheck(Option<Arc<dyn CheckCalls>>);

/// The context of a call: its deadline and its caller.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The caller's deadline.
    pub deadline: Option<Instant>,
    /// The caller, if there is an interceptor.
    pub caller: Option<Caller>,
}

/// A call of a hot method that is about to begin.
pub struct IncomingCall {
    /// The context of the call.
    pub context: CallContext,
    /// The messages of the call, as they arrive.
    pub messages: Messages,
}

/// A call of one message that has arrived and may be answered at once.
#[derive(Debug)]
pub struct PendingCall {
    /// The message, without its prefix.
    pub message: Bytes,
    /// The context of the call.
    pub context: CallContext,
}

/// Calls of a batch whose answers are not ready, each with its index in the batch.
pub type Unanswered = Vec<(usize, Call)>;

/// A call that has begun.
pub enum BegunCall {
    /// A call that may be answered in a batch, by [`HotService::answer_each`].
    Pending(PendingCall),
    /// A call that is answered alone.
    Call(Call),
}

impl From<Call> for BegunCall {
    fn from(call: Call) -> Self {
        Self::Call(call)
    }
}

/// The services of one worker, as its connections see them. Hot methods are answered from bytes to bytes; every
/// other call is an `http::Request` for a general router.
pub trait HotService: Send + Sync + 'static {
    /// Returns the methods, with their properties.
    fn methods(&self) -> &Methods;

    /// Begins a call of a hot method. `closing` changes when the connection is about to end.
    fn begin(&self, method: MethodId, call: IncomingCall, closing: &watch::Receiver<()>) -> BegunCall;

    /// Answers the calls of a batch, separately and in their order. `each` gets their indices and answers: messages
    /// with their prefixes. Calls whose answers are not ready are returned.
    fn answer_each(
        &self,
        pending: &[PendingCall],
        each: impl FnMut(usize, Result<&[u8], Status>),
    ) -> Unanswered;

    /// Begins a call of any other method.
    fn other(&self, context: CallContext, request: http::Request<RequestBody>) -> Call;
}
