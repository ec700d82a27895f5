//! What ends a stream or a connection.

/// RFC 9113, section 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::server) enum Code {
    NoError = 0,
    Protocol = 1,
    Internal = 2,
    FlowControl = 3,
    StreamClosed = 5,
    FrameSize = 6,
    RefusedStream = 7,
    Compression = 9,
    EnhanceYourCalm = 11,
}

/// An error of the connection, which it does not survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) struct Broken {
    pub(super) code: Code,
    /// For people.
    pub(super) why: &'static str,
}

impl Broken {
    pub(super) const fn new(code: Code, why: &'static str) -> Self {
        Self { code, why }
    }

    pub(super) const fn protocol(why: &'static str) -> Self {
        Self::new(Code::Protocol, why)
    }
}
