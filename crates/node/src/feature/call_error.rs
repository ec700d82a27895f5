//! The error of a call, apart from any transport.

/// The error of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The number of its gRPC code, from 1 to 16.
    pub code: u8,
    /// A sentence for the caller.
    pub message: String,
    /// Details, as in `grpc-status-details-bin`.
    pub details: Vec<CallErrorDetail>,
}

/// A detail of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallErrorDetail {
    /// The full name of the message.
    pub name: String,
    /// The encoded message.
    pub message: Vec<u8>,
}
