//! Outcomes of calls.

use crate::answer::CountedAnswer;

/// Outcome of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallOutcome {
    pub(super) call: LoadCall,
    pub(super) result: Result<CountedAnswer, Failure>,
}

/// A call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LoadCall {
    /// Scheduled time, from which latency is measured.
    pub(super) due_ns: u64,
    /// Time when it was made.
    pub(super) sent_ns: u64,
    /// Key of the call; for a batch, the last one.
    pub(super) key: u64,
    /// True if it is counted; false during the warm-up.
    pub(super) counts: bool,
}

/// Failure of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// A gRPC status, and the server's message.
    Status(i32, String),
    /// An HTTP status other than success.
    Http(u16),
    /// The server reset the stream with this code.
    Reset(u32),
    /// The message is missing, or of another type.
    Malformed,
    /// The connection was lost.
    Lost,
    /// The server did not answer in time.
    Timeout,
}
