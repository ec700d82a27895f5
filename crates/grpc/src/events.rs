//! What operators see of connections.

use crate::error_code::ErrorCode;
use crate::open_streams::StreamBound;

/// Something that happened to a connection or a stream, beside its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// GOAWAY was sent with this code. `NoError` is a graceful end.
    Goaway(ErrorCode),
    /// The client sent more faults or resets than the limits allow, so its connection ends.
    Flood,
    /// The client reset a call that had begun.
    ResetInFlight,
    /// A call was ended because the budget of buffered bytes was full.
    BudgetRefusal,
    /// A stream was refused because as many were open as may be.
    StreamRefusal(StreamBound),
    /// A call was ended because its message did not arrive in time.
    MessageTimeout,
}

/// Counts what happens to connections. Called on the workers, so it must not block.
pub trait ConnectionObserver: Send + Sync + 'static {
    /// Takes note of an event; `reason` is for people.
    fn observe(&self, event: ConnectionEvent, reason: &'static str);
}

/// Observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl ConnectionObserver for Unobserved {
    fn observe(&self, _: ConnectionEvent, _: &'static str) {}
}
