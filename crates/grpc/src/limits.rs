//! The limits of one connection.

use std::time::Duration;

/// Limits of one connection. The defaults are those of a public server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Concurrent streams (SETTINGS_MAX_CONCURRENT_STREAMS).
    pub max_streams: u32,
    /// Open calls of side streams ([`crate::SideStream`]).
    pub max_side_streams: usize,
    /// Bytes of the headers of one call, counted as SETTINGS_MAX_HEADER_LIST_SIZE counts them.
    pub max_header_bytes: u32,
    /// Streams that the client may reset within 10 ms, on average since it sent some last, but for 1 s at most. Beyond it
    /// the connection ends.
    pub max_pending_resets: usize,
    /// Bound of streams that the server has reset for faults of the client. Beyond it the connection ends.
    pub max_local_resets: usize,
    /// Time in which a new client must send its preface and SETTINGS.
    pub handshake_timeout: Duration,
    /// Time in which the first message of a call must begin.
    pub first_message_timeout: Duration,
    /// Silence of the client after which a keepalive PING is sent.
    pub keepalive_interval: Duration,
    /// Time in which the client must acknowledge that PING.
    pub keepalive_timeout: Duration,
    /// Text for clients that speak HTTP/1.1: people and health checks that have found the wrong port.
    pub http1_hint: &'static str,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max_streams: 1024,
            max_side_streams: 64,
            max_header_bytes: 16 << 10,
            max_pending_resets: 1024,
            max_local_resets: 1024,
            handshake_timeout: Duration::from_secs(10),
            first_message_timeout: Duration::from_secs(10),
            keepalive_interval: Duration::from_secs(20),
            keepalive_timeout: Duration::from_secs(10),
            http1_hint: "",
        }
    }
}
