//! Bounds of the open calls of one connection: the same as on `fast`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tonic::Status;
use weir_grpc::{
    BufferBudget, CallKind, ConnectionContext, ConnectionEvent, ConnectionObserver, FEW_CALLS, HeldBytes,
    Inflater, Methods, OpenStream, StreamBound, no_space,
};

use crate::server::body_layer::BodyLayer;

/// Memory of an open call in bytes beside that of its service: its stream in h2, its task in hyper, its headers.
const CALL_BYTES: usize = 4 << 10;

/// The bounds and counts of the open calls of one connection. Clones share the counts.
#[derive(Clone)]
pub(super) struct CallBounds {
    open_calls: Arc<AtomicUsize>,
    side_streams: Arc<AtomicUsize>,
    max_side_streams: usize,
    pub(super) first_message_timeout: Duration,
    pub(super) budget: BufferBudget,
    pub(super) observer: Arc<dyn ConnectionObserver>,
}

/// One open call. It counts until it is dropped: with the body of its response.
pub(super) struct OpenCall {
    _stream: Option<OpenStream>,
    _place: CallPlace,
    _side: Option<CallPlace>,
    _held: HeldBytes,
}

impl BodyLayer for OpenCall {}

/// One count in the calls, or in the side streams, of a connection. It ends when this is dropped.
struct CallPlace(Arc<AtomicUsize>);

impl Drop for CallPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl CallBounds {
    pub(super) fn new(shared: &ConnectionContext) -> Self {
        Self {
            open_calls: Arc::default(),
            side_streams: Arc::default(),
            max_side_streams: shared.limits.max_side_streams,
            first_message_timeout: shared.limits.first_message_timeout,
            budget: shared.budget.budget().clone(),
            observer: Arc::clone(&shared.observer),
        }
    }

    /// Counts a call of the method with this path, or returns the status of the bound that refuses it.
    pub(super) fn admit(&self, methods: &Methods, path: &str) -> Result<OpenCall, Status> {
        let (kind, bytes) = methods.open_call(path);
        let side = match kind {
            CallKind::SideStream => Some(self.side_place()?),
            CallKind::Hot | CallKind::Unary | CallKind::Stream => None,
        };
        let stream = if kind.is_stream() { Some(self.open_stream()?) } else { None };
        let bytes = CALL_BYTES + bytes;
        let held = match kind {
            // Refused later, and only if its message does not arrive with the headers: see `CountedMessages`.
            CallKind::Hot => self.budget.hold_anyway(bytes),
            _ => self.hold(bytes, "the buffer budget is full: a call")?,
        };
        self.open_calls.fetch_add(1, Relaxed);
        let place = CallPlace(Arc::clone(&self.open_calls));
        Ok(OpenCall { _stream: stream, _place: place, _side: side, _held: held })
    }

    /// Holds bytes of the buffer budget, or returns the status of a refused call.
    pub(super) fn hold(&self, bytes: usize, otherwise: &'static str) -> Result<HeldBytes, Status> {
        self.budget.hold(bytes).ok_or_else(|| self.no_space(otherwise))
    }

    /// Creates the decompressor of a compressed body.
    pub(super) fn inflater(&self, largest: usize) -> Inflater {
        Inflater::new(largest, self.budget.clone(), Arc::clone(&self.observer))
    }

    /// True if the connection has so many calls that those without a message are ended while the budget is full. h2
    /// offers no way to end streams of another connection instead.
    pub(super) fn has_many_calls(&self) -> bool {
        self.open_calls.load(Relaxed) > FEW_CALLS
    }

    /// Reports and returns the status of a call for which there is no space.
    pub(super) fn no_space(&self, what: &'static str) -> Status {
        self.observer.observe(ConnectionEvent::BudgetRefusal, what);
        no_space()
    }

    fn side_place(&self) -> Result<CallPlace, Status> {
        let fits = |open: usize| (open < self.max_side_streams).then(|| open + 1);
        match self.side_streams.fetch_update(Relaxed, Relaxed, fits) {
            Ok(_) => Ok(CallPlace(Arc::clone(&self.side_streams))),
            Err(_) => Err(self.refusal(StreamBound::Side, self.max_side_streams)),
        }
    }

    fn open_stream(&self) -> Result<OpenStream, Status> {
        let streams = self.budget.streams();
        streams.open().ok_or_else(|| self.refusal(StreamBound::Open, streams.limit()))
    }

    fn refusal(&self, bound: StreamBound, limit: usize) -> Status {
        self.observer.observe(ConnectionEvent::StreamRefusal(bound), "as many streams are open as may be");
        bound.refusal(limit)
    }
}
