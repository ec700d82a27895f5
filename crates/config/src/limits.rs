//! The `server.limits` section: what callers can make the server hold or do.

use weir_units::Micros;

use super::ServerLimits;
use super::errors::MistakeReport;
use super::fields::Mapping;
use super::quantities::{duration_within, size};
use super::values::{Scalar, integer_within, within};

/// The most connections. Each is an open file, and no process has more than this.
pub(super) const MAX_CONNECTIONS: usize = 1_000_000;

/// The most streams or resets of one connection; RFC 9113 allows more, nobody needs them.
pub(super) const MAX_STREAMS: usize = 100_000;

/// The most open streams of a process: as many as a hundred connections may have calls.
pub(super) const MAX_OPEN_STREAMS: usize = 10_000_000;

/// Headers: what HTTP/2 clients send anyway, and more than any of them should.
pub(super) const HEADER_BYTES: (usize, usize) = (1 << 10, 1 << 20);

/// Messages: a request with every field at its bound fits; gRPC's own default is 4 MiB.
pub(super) const MESSAGE_BYTES: (usize, usize) = (32 << 10, 4 << 20);

/// The largest batch. A request of a thousand ordinary questions takes about a tenth of it.
pub const MAX_BATCH_BYTES: usize = 1 << 20;

/// Buffers: at least two of the largest messages, so that one that arrives slowly stops no other.
pub(super) const BUFFERED_BYTES: (usize, usize) = (2 << 20, 1 << 40);

const SHORTEST_WAIT: Micros = Micros::from_millis(100);
const LONGEST_WAIT: Micros = Micros::from_secs(3600);
const LONGEST_AGE: Micros = Micros::from_secs(7 * 86_400);

/// The section; every bound has a default.
pub(super) fn limits(mut fields: Mapping<'_>, report: &mut MistakeReport) -> ServerLimits {
    let default = ServerLimits::default();
    let count = |max| move |s: Scalar<'_>| integer_within(s, 1, max);
    let bytes = |(min, max)| move |s: Scalar<'_>| within(size(s)?, min, max);
    let wait = |s: Scalar<'_>| duration_within(s, SHORTEST_WAIT, LONGEST_WAIT);
    let age = |s: Scalar<'_>| duration_within(s, Micros::from_secs(1), LONGEST_AGE);
    // Both bounds fit 32 bits.
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let limits = ServerLimits {
        max_connections: fields
            .read("max_connections", report, count(MAX_CONNECTIONS))
            .unwrap_or(default.max_connections),
        max_streams: fields
            .read("max_streams", report, count(MAX_STREAMS))
            .map_or(default.max_streams, small),
        max_side_streams: fields
            .read("max_side_streams", report, count(MAX_STREAMS))
            .unwrap_or(default.max_side_streams),
        max_open_streams: fields
            .read("max_open_streams", report, count(MAX_OPEN_STREAMS))
            .unwrap_or(default.max_open_streams),
        max_header_bytes: fields
            .read("max_header_bytes", report, bytes(HEADER_BYTES))
            .map_or(default.max_header_bytes, small),
        max_message_bytes: fields
            .read("max_message_bytes", report, bytes(MESSAGE_BYTES))
            .unwrap_or(default.max_message_bytes),
        max_pending_resets: fields
            .read("max_pending_resets", report, count(MAX_STREAMS))
            .unwrap_or(default.max_pending_resets),
        max_local_resets: fields
            .read("max_local_resets", report, count(MAX_STREAMS))
            .unwrap_or(default.max_local_resets),
        max_buffered_bytes: fields
            .read("max_buffered_bytes", report, bytes(BUFFERED_BYTES))
            .unwrap_or(default.max_buffered_bytes),
        handshake_timeout: fields
            .read("handshake_timeout", report, wait)
            .unwrap_or(default.handshake_timeout),
        first_message_timeout: fields
            .read("first_message_timeout", report, wait)
            .unwrap_or(default.first_message_timeout),
        keepalive_interval: fields
            .read("keepalive_interval", report, wait)
            .unwrap_or(default.keepalive_interval),
        keepalive_timeout: fields
            .read("keepalive_timeout", report, wait)
            .unwrap_or(default.keepalive_timeout),
        max_connection_age: fields.read("max_connection_age", report, age),
        max_connection_age_grace: fields
            .read("max_connection_age_grace", report, |s| duration_within(s, Micros::ZERO, LONGEST_WAIT))
            .unwrap_or(default.max_connection_age_grace),
    };
    let largest = limits.max_message_bytes.max(MAX_BATCH_BYTES);
    if limits.max_buffered_bytes < 2 * largest {
        let reason = format!(
            "{} bytes are less than twice the largest message, which may have {largest}: set at least {}",
            limits.max_buffered_bytes,
            2 * largest
        );
        fields.report("max_buffered_bytes", report, reason);
    }
    fields.finish(report);
    limits
}
