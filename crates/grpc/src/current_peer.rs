//! The peer of the connection that this thread is serving, for log lines.
//!
//! A worker is one thread, so it is thread-local, as the turn is. It costs a store for each poll of a connection, and
//! nothing for each call.

use std::cell::Cell;

use crate::peer::PeerAddress;

thread_local! {
    static CURRENT: Cell<PeerAddress> = const { Cell::new(PeerAddress::Unknown) };
}

/// Returns where the call comes from that is polled now; [`PeerAddress::Unknown`] outside calls.
#[must_use]
pub fn current_peer() -> PeerAddress {
    CURRENT.get()
}

/// Polls a part of a call from `address`. For servers that poll calls themselves.
#[inline]
pub fn with_peer<T>(address: PeerAddress, poll: impl FnOnce() -> T) -> T {
    CURRENT.set(address);
    let polled = poll();
    CURRENT.set(PeerAddress::Unknown);
    polled
}
