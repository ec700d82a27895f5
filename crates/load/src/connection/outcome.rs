//! Outcomes of calls.

use crate::answer::CountedAnswer;

/// A call that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallOutcome {
    pub(crate) call: LoadCall,
    pub(crate) result: Result<CountedAnswer, Failure>,
}

/// A call, as the one who makes it knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LoadCall {
    /// When it was due: what its latency counts from.
    pub(crate) due_ns: u64,
    /// When it was made.
    pub(crate) sent_ns: u64,
    /// Which key it is about; of a batch, the last of them.
    pub(crate) key: u64,
    /// True if it is counted; false during the warm-up.
    pub(crate) counts: bool,
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A gRPC status, and what the server says.
    Status(i32, String),
    /// An HTTP status that is no success.
    Http(u16),
    /// The server reset the stream, with this code.
    Reset(u32),
    /// The message is not what the method answers with, or there is none.
    Malformed,
    /// The connection was lost before.
    Lost,
    /// No answer in time.
    Timeout,
}
