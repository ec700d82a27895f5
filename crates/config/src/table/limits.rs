//! The table's section `server.limits`: bounds on the resources that callers can use.

use weir_units::Micros;

use super::kinds::Optional;
use super::numbers::{ByteSize, Count, Span};
use super::section;

/// Upper bound of connections. Each is an open file, and no process has more than this.
const MAX_CONNECTIONS: usize = 1_000_000;

/// Upper bound of streams or resets of one connection; RFC 9113 allows more, nobody needs them.
const MAX_STREAMS: usize = 100_000;

/// Upper bound of open streams of a process: a hundred connections with the maximum number of streams.
const MAX_OPEN_STREAMS: usize = 10_000_000;

/// Maximum size of a batch, in bytes. A request of a thousand ordinary decisions takes about a tenth of it.
pub const MAX_BATCH_BYTES: usize = 1 << 20;

const SHORTEST_WAIT: Micros = Micros::from_millis(100);
const LONGEST_WAIT: Micros = Micros::from_secs(3600);
const LONGEST_AGE: Micros = Micros::from_secs(7 * 86_400);

section! {
    /// Bounds of what callers can make the server hold or do.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ServerLimits {
        before: [],

        /// Open connections; further ones are closed at once.
        pub max_connections: usize = 10_000 => {
            kind: Count(1, MAX_CONNECTIONS),
            more: "Each takes an open file and some memory. Callers notice a closed connection sooner than a full \
                   queue. `weir_connections_refused_total` counts them. If the limit does not fit into the limit of \
                   [open files](#open-files), Weir logs a warning at the start.",
        }
        /// Open connections to the admin port, half of them from one address.
        pub admin_max_connections: usize = 64 => {
            kind: Count(2, 10_000_usize),
            more: "At the bound the connection is closed whose caller keeps it waiting longest, never a new one. A request \
                   must arrive, and its answer be read, within 5 s; between two requests a connection may be silent for \
                   60 s. As many open files are kept free for them.",
        }
        /// Calls in flight on one connection.
        pub max_streams: u32 = 1024 => {
            kind: Count(1, MAX_STREAMS as u32),
            more: "The limit is announced to clients (SETTINGS_MAX_CONCURRENT_STREAMS), and calls above it are refused. \
                   A client that needs more opens another connection.",
        }
        /// Open calls of streaming methods other than ShouldAllowStream, on one connection.
        pub max_side_streams: usize = 64 => {
            kind: Count(1, MAX_STREAMS),
            more: "They are Subscribe, Health/Watch and reflection. Further ones get RESOURCE_EXHAUSTED. A client needs \
                   a few of them. Unary calls, also a Take that waits, are bounded by `max_streams`.",
        }
        /// Open calls of all streaming methods, of all connections.
        pub max_open_streams: usize = 32_768 => {
            kind: Count(1, MAX_OPEN_STREAMS),
            more: "Further ones get RESOURCE_EXHAUSTED. As many streams of decisions take `max_buffered_bytes`. \
                   `weir_stream_refusals_total` counts what this bound and the one before refuse, `weir_open_streams` \
                   the open ones.",
        }
        /// Bytes of the headers of one call.
        // From what HTTP/2 clients send anyway to more than any of them should.
        pub max_header_bytes: u32 = 16 << 10 => {
            kind: ByteSize(1_u32 << 10, 1 << 20),
            more: "Callers need a few hundred bytes; the rest is for what proxies add (tokens, trace contexts). A \
                   larger header list ends its call but not its connection (RESOURCE_EXHAUSTED; on `tonic` HTTP 431). \
                   Blocks of up to 256 KiB, or twice this bound where that is more, are read for that. A larger block \
                   ends the connection.",
        }
        /// Bytes of one message, in either direction.
        // A request with every field at its bound fits; gRPC's own default is 4 MiB.
        pub max_message_bytes: usize = 64 << 10 => {
            kind: ByteSize(32_usize << 10, 4 << 20),
            more: "A single decision with every field at its bound takes about 18 KiB. A larger message is refused \
                   before it is read.",
        }
        /// Calls that a client may cancel on a connection within 10 ms; above it the connection ends.
        pub max_pending_resets: usize = 1024 => {
            kind: Count(1, MAX_STREAMS),
            more: "It is a bound on rapid resets (CVE-2023-44487). The default is 102,400 in a second. Time without \
                   cancellations counts as well, up to 1 s of it: what has piled up while the server did not run is no \
                   flood. A client with deadlines cancels all its calls at once when the server stalls, so this should be \
                   at least `max_streams`. On `tonic`, it is the number of calls that are cancelled before they have begun.",
        }
        /// Calls that the server may reset for faults of the client; above it the connection ends.
        pub max_local_resets: usize = 1024 => {
            kind: Count(1, MAX_STREAMS),
            more: "It is a bound on resets that a client provokes (CVE-2025-8671, MadeYouReset). DATA that arrives late, \
                   after the client's own RST_STREAM, does not count (on `tonic` it does). The count decays to 0 within \
                   10 s.",
        }
        /// Bytes that all connections together may hold; at least twice the largest message.
        pub max_buffered_bytes: usize = 64 << 20 => {
            kind: ByteSize(2_usize << 20, 1 << 40),
            more: "They are open calls (see [below](#memory-of-open-calls)), messages that are incomplete or wait for \
                   their decisions, retained headers, and unsent answers. When the budget is full, a new stream, or a \
                   call of a method that is not of decisions, gets RESOURCE_EXHAUSTED. The connection that holds most \
                   loses its oldest incomplete message (RESOURCE_EXHAUSTED); if it has none, the stream with the most \
                   unsent bytes; then its newest calls without a message, and its newest streams. No message waits for \
                   space. A message must arrive within 10 s. `weir_buffer_refusals_total` counts these ends. While a \
                   connection of another worker frees its bytes, the total may be up to an eighth above the budget.",
        }
        /// TLS handshakes that have not finished, of all ports together.
        pub max_handshakes: usize = 256 => {
            kind: Count(2, MAX_CONNECTIONS),
            more: "At the bound, a new connection closes an unfinished one, of the address (IPv6: /64) that has most of \
                   them: one that has sent nothing, otherwise the oldest. `weir_tls_handshakes_total` counts it as \
                   `evicted`. Beside that, a worker spends at most a fifth of its time on handshakes.",
        }
        /// Timeout of a TLS handshake.
        pub tls_handshake_timeout: Micros = Micros::from_secs(5) => {
            kind: Span(SHORTEST_WAIT, LONGEST_WAIT),
            more: "`handshake_timeout` begins after it.",
        }
        /// Timeout of the HTTP/2 handshake of a new connection.
        pub handshake_timeout: Micros = Micros::from_secs(10) => {
            kind: Span(SHORTEST_WAIT, LONGEST_WAIT),
            more: "A connection that sends nothing is closed.",
        }
        /// Timeout of the first message of a call, after its headers.
        pub first_message_timeout: Micros = Micros::from_secs(10) => {
            kind: Span(SHORTEST_WAIT, LONGEST_WAIT),
            more: "Otherwise the call ends with DEADLINE_EXCEEDED (`weir_message_timeouts_total`). Streams that have \
                   sent a message may be silent for as long as they like.",
        }
        /// Interval of the server's keepalive PINGs.
        pub keepalive_interval: Micros = Micros::from_secs(20) => {
            kind: Span(SHORTEST_WAIT, LONGEST_WAIT),
        }
        /// Timeout of the answer to a keepalive PING.
        pub keepalive_timeout: Micros = Micros::from_secs(10) => {
            kind: Span(SHORTEST_WAIT, LONGEST_WAIT),
            more: "Then the connection is closed. With the defaults, the connections of a lost machine are closed \
                   within half a minute.",
        }
        /// Highest age of a connection.
        pub max_connection_age: Option<Micros> = None => {
            kind: Optional(Span(Micros::from_secs(1), LONGEST_AGE), "none"),
            more: "After this time the server sends GOAWAY, and the client opens another connection. Calls in flight \
                   finish. The time of each connection differs by up to 20 % in either direction, so that they do not \
                   all move at once. Set it if a load balancer distributes connections, so that new servers get their \
                   share.",
        }
        /// Time for which the calls of a connection may finish once it has reached its age.
        pub max_connection_age_grace: Micros = Micros::from_secs(10) => {
            kind: Span(Micros::ZERO, LONGEST_WAIT),
            more: "Then the connection ends, with all streams and watches that are still open.",
        }

        after: [],
        others: {}
    }
}
