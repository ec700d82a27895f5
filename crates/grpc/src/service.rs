//! What a connection asks of the services behind it. Nothing here knows what they decide.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use tokio::sync::watch;
use tonic::Status;

use crate::body::RequestBody;
use crate::call::Call;
use crate::deadline::deadline_of;
use crate::intercept::{Caller, Intercept, SharedIntercept};
use crate::messages::Messages;

/// Calls that are worth being answered together.
pub const BATCH: usize = 16;

/// The number of a hot method: its place in the list of [`Methods::new`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodId(pub u8);

/// A method that the service answers from bytes to bytes, without a general router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotMethod {
    /// The path of its calls: `/package.Service/Method`.
    pub path: &'static str,
    /// The largest message that it takes, in bytes.
    pub largest_message: usize,
    /// Whether its calls may be answered together ([`BegunCall::Pending`]). Before a call of any other method begins,
    /// those before it are answered, so that calls are decided in their order.
    pub together: bool,
    /// Whether its calls have streams of messages.
    pub streaming: bool,
}

/// What a connection must know of methods before a call of them begins. Clones share it.
#[derive(Debug, Clone)]
pub struct Methods(Arc<MethodTable>);

#[derive(Debug)]
struct MethodTable {
    hot: Vec<HotMethod>,
    largest_other: usize,
    kept_headers: Vec<HeaderName>,
    intercept: Option<SharedIntercept>,
}

impl Methods {
    /// The hot methods; at most 256 of them are looked at. Messages of all other methods may have
    /// `largest_other` bytes.
    #[must_use]
    pub fn new(hot: Vec<HotMethod>, largest_other: usize) -> Self {
        Self(Arc::new(MethodTable { hot, largest_other, kept_headers: Vec::new(), intercept: None }))
    }

    /// The same, where `intercept` checks every call first.
    #[must_use]
    pub fn intercepted_by(&self, intercept: Arc<dyn Intercept>) -> Self {
        let MethodTable { hot, largest_other, .. } = &*self.0;
        let (hot, largest_other) = (hot.clone(), *largest_other);
        let kept_headers = intercept.names().to_vec();
        let intercept = Some(SharedIntercept(intercept));
        Self(Arc::new(MethodTable { hot, largest_other, kept_headers, intercept }))
    }

    /// What is known of a call with all these headers, if the interceptor lets it through: for servers that keep
    /// headers by themselves.
    pub fn context_of(&self, path: &str, headers: &HeaderMap) -> Result<CallContext, Status> {
        let mut context = CallContext { deadline: deadline_of(headers), ..CallContext::default() };
        for name in self.kept_headers() {
            if let Some(value) = headers.get(name) {
                context.metadata.get_or_insert_default().insert(name, value.clone());
            }
        }
        self.check(Some(path), None, &mut context)?;
        Ok(context)
    }

    /// Lets the interceptor check a call of a path or a hot method, if there is one.
    #[inline]
    pub(crate) fn check(
        &self,
        path: Option<&str>,
        method: Option<MethodId>,
        context: &mut CallContext,
    ) -> Result<(), Status> {
        let Some(SharedIntercept(intercept)) = &self.0.intercept else { return Ok(()) };
        let hot = method.and_then(|MethodId(place)| self.0.hot.get(usize::from(place)));
        let path = hot.map(|method| method.path).or(path).unwrap_or_default();
        let checked = match &context.metadata {
            Some(headers) => intercept.check(path, headers),
            None => intercept.check(path, &HeaderMap::new()),
        };
        context.caller = Some(checked?);
        Ok(())
    }

    /// The hot method with this path.
    #[inline]
    pub(crate) fn find(&self, path: &[u8]) -> Option<MethodId> {
        let place = self.0.hot.iter().position(|method| method.path.as_bytes() == path)?;
        u8::try_from(place).ok().map(MethodId)
    }

    /// The largest message of a method, or of those that are not hot.
    #[inline]
    pub(crate) fn largest_message(&self, method: Option<MethodId>) -> usize {
        let hot = method.and_then(|MethodId(place)| self.0.hot.get(usize::from(place)));
        hot.map_or(self.0.largest_other, |method| method.largest_message)
    }

    /// Whether the messages of a call are decided one by one. General routers may have such methods.
    pub(crate) fn is_streaming(&self, method: Option<MethodId>) -> bool {
        let hot = method.and_then(|MethodId(place)| self.0.hot.get(usize::from(place)));
        hot.is_none_or(|method| method.streaming)
    }

    /// Whether calls of this method may be answered together.
    #[inline]
    pub(crate) fn is_together(&self, method: Option<MethodId>) -> bool {
        method.and_then(|MethodId(place)| self.0.hot.get(usize::from(place))).is_some_and(|hot| hot.together)
    }

    /// Headers that are kept of every call, beside those that gRPC itself needs.
    pub(crate) fn kept_headers(&self) -> &[HeaderName] {
        &self.0.kept_headers
    }
}

/// What is known of a call beside its messages.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// The headers that were asked to be kept, if the call has any of them.
    pub metadata: Option<Box<HeaderMap>>,
    /// Who makes it, if an interceptor has said so.
    pub caller: Option<Caller>,
}

/// A call of a hot method that is about to begin.
pub struct IncomingCall {
    /// What is known of it.
    pub context: CallContext,
    /// Its messages, as they arrive.
    pub messages: Messages,
}

/// A call of one message that has arrived and may be answered at once.
#[derive(Debug)]
pub struct PendingCall {
    /// The message, without its prefix.
    pub message: Bytes,
    /// Its call.
    pub context: CallContext,
}

/// Places in a slice of pending calls whose answers must be waited for, and what their calls go on as.
pub type Unanswered = Vec<(usize, Call)>;

/// A call that has begun.
pub enum BegunCall {
    /// It may be answered together with others, by [`HotService::answer_each`].
    Pending(PendingCall),
    /// It is answered by itself.
    Call(Call),
    /// It asks for more decisions than the turn of its connection may still make ([`crate::turn::exceeds`]). It is
    /// begun again in the next turn, with this message.
    Postponed(Bytes),
}

impl From<Call> for BegunCall {
    fn from(call: Call) -> Self {
        Self::Call(call)
    }
}

/// The services of one worker, as its connections see them. Hot methods are answered from bytes to bytes;
/// every other call is an `http::Request` for a general router.
pub trait HotService: Send + Sync + 'static {
    /// What is known of the methods before a call begins.
    fn methods(&self) -> &Methods;

    /// Begins a call of a hot method. `closing` changes when the connection is about to end.
    fn begin(&self, method: MethodId, call: IncomingCall, closing: &watch::Receiver<()>) -> BegunCall;

    /// Answers calls, each for itself and in their order. `each` gets their places and the answers: messages
    /// with their prefixes. Calls whose answers must be waited for are returned.
    fn answer_each(
        &self,
        pending: &[PendingCall],
        each: impl FnMut(usize, Result<&[u8], Status>),
    ) -> Unanswered;

    /// Begins a call of any other method.
    fn other(&self, context: CallContext, request: http::Request<RequestBody>) -> Call;
}
