//! The peer of the connection that this thread is serving: its address for log lines, and its number to tell callers apart.
//!
//! A worker is one thread, so it is thread-local, as the turn is. It costs a store for each poll of a connection, and
//! nothing for each call.

use std::cell::Cell;
use std::future::poll_fn;

use crate::peer::{Peer, PeerAddress};

thread_local! {
    static CURRENT: Cell<CurrentPeer> = const { Cell::new(CurrentPeer::NONE) };
}

/// A peer, in a form that is copied.
#[derive(Debug, Clone, Copy)]
pub struct CurrentPeer {
    address: PeerAddress,
    number: u32,
}

impl CurrentPeer {
    const NONE: Self = Self { address: PeerAddress::Unknown, number: 0 };

    /// Returns the peer whose call is polled now.
    #[must_use]
    pub fn get() -> Self {
        CURRENT.get()
    }

    /// Polls `future` as a part of a call of this peer, in a separate task.
    pub fn polls<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        let mut future = Box::pin(future);
        poll_fn(move |context| with_peer(self, || future.as_mut().poll(context)))
    }
}

impl From<&Peer> for CurrentPeer {
    fn from(peer: &Peer) -> Self {
        Self { address: peer.address(), number: peer.number() }
    }
}

/// Returns where the call comes from that is polled now; [`PeerAddress::Unknown`] outside calls.
#[must_use]
pub fn current_peer() -> PeerAddress {
    CURRENT.get().address
}

/// Returns the number of the connection whose call is polled now; 0 outside calls.
#[inline]
#[must_use]
pub fn current_connection() -> u32 {
    CURRENT.get().number
}

/// Polls a part of a call of `peer`. For servers that poll calls themselves.
#[inline]
pub fn with_peer<T>(peer: CurrentPeer, poll: impl FnOnce() -> T) -> T {
    CURRENT.set(peer);
    let polled = poll();
    CURRENT.set(CurrentPeer::NONE);
    polled
}
