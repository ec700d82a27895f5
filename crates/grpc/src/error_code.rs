//! Errors that end a stream or a connection.

/// Error codes of RFC 9113, section 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// NO_ERROR: graceful shutdown, or the rest of a request that is not needed.
    NoError = 0,
    /// PROTOCOL_ERROR.
    Protocol = 1,
    /// INTERNAL_ERROR.
    Internal = 2,
    /// FLOW_CONTROL_ERROR.
    FlowControl = 3,
    /// STREAM_CLOSED: a frame for a stream that has ended.
    StreamClosed = 5,
    /// FRAME_SIZE_ERROR.
    FrameSize = 6,
    /// REFUSED_STREAM: nothing was processed, so the call may be sent again.
    RefusedStream = 7,
    /// COMPRESSION_ERROR: a header block that cannot be decoded.
    Compression = 9,
    /// ENHANCE_YOUR_CALM: a flood, or no space in the buffer budget.
    EnhanceYourCalm = 11,
}

/// A connection error (RFC 9113, 5.4.1): the connection ends with GOAWAY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionError {
    /// The error code in GOAWAY.
    pub code: ErrorCode,
    /// The reason, for people.
    pub reason: &'static str,
}

impl ConnectionError {
    pub(crate) const fn new(code: ErrorCode, reason: &'static str) -> Self {
        Self { code, reason }
    }

    pub(crate) const fn protocol(reason: &'static str) -> Self {
        Self::new(ErrorCode::Protocol, reason)
    }
}
