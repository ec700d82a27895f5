//! Events of connections, for operators.

use crate::error_code::ErrorCode;
use crate::open_streams::StreamBound;

/// An event of a connection or a stream, apart from the answers of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// GOAWAY was sent with this code. `NoError` is a graceful shutdown.
    Goaway(ErrorCode),
    /// The client exceeded a limit of faults or resets, so its connection ends.
    Flood,
    /// The client reset a call in flight.
    ResetInFlight,
    /// A call was ended because the buffer budget was full.
    BudgetRefusal,
    /// A stream was refused because this bound is reached.
    StreamRefusal(StreamBound),
    /// A call was ended because its message did not arrive in time.
    MessageTimeout,
}

/// Receives the events of connections. Called on the workers, so it must not block.
pub trait ConnectionObserver: Send + Sync + 'static {
    /// Records an event; `reason` is for people.
    fn observe(&self, event: ConnectionEvent, reason: &'static str);
}

/// An observer that ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl ConnectionObserver for Unobserved {
    fn observe(&self, _: ConnectionEvent, _: &'static str) {}
}
