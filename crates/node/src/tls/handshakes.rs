//! The bound of unfinished handshakes, of all ports of the process.
//!
//! At the bound a new handshake closes another one, so silent and slow clients keep nobody out: they fill the places
//! of their own address first. A handshake has its place from the moment its connection is accepted, so connections
//! that a busy worker has not taken over yet count as well.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::eviction_order::EvictionOrder;
use crate::client_network::ClientNetwork;

/// The unfinished handshakes.
pub struct Handshakes {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    handshakes: EvictionOrder<ClientNetwork, Arc<Unfinished>>,
    next: u64,
}

struct Unfinished {
    has_sent: AtomicBool,
    is_evicted: AtomicBool,
    closed: Notify,
}

/// One unfinished handshake. It counts until it is dropped.
pub struct HandshakeSlot {
    handshakes: Arc<Handshakes>,
    source: ClientNetwork,
    id: u64,
    /// Number of its source's handshakes when it began, itself included.
    pub(super) of_source: usize,
    entry: Arc<Unfinished>,
}

impl Handshakes {
    /// Allows `most` at a time.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// Begins a handshake. At the bound, another one is closed.
    pub(super) fn begin(self: &Arc<Self>, peer: Option<IpAddr>) -> HandshakeSlot {
        let source = ClientNetwork::new(peer);
        let entry = Arc::new(Unfinished {
            has_sent: AtomicBool::new(false),
            is_evicted: AtomicBool::new(false),
            closed: Notify::new(),
        });
        let mut open = self.open.lock();
        if open.handshakes.len() >= self.most
            && let Some(other) = open.handshakes.pop(|other| other.has_sent.load(Relaxed))
        {
            other.is_evicted.store(true, Relaxed);
            other.closed.notify_one();
        }
        open.next += 1;
        let id = open.next;
        let of_source = open.handshakes.insert(source, id, Arc::clone(&entry));
        HandshakeSlot { handshakes: Arc::clone(self), source, id, of_source, entry }
    }
}

impl HandshakeSlot {
    /// Records that the client has sent something.
    pub(super) fn has_sent(&self) {
        self.entry.has_sent.store(true, Relaxed);
    }

    pub(super) fn is_evicted(&self) -> bool {
        self.entry.is_evicted.load(Relaxed)
    }

    /// Waits until the handshake has to end for another one.
    pub(super) async fn evicted(&self) {
        self.entry.closed.notified().await;
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        self.handshakes.open.lock().handshakes.remove(self.source, self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_evicted(slot: &HandshakeSlot) -> bool {
        pin!(slot.evicted()).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn begin(handshakes: &Arc<Handshakes>, peer: &str) -> HandshakeSlot {
        handshakes.begin(Some(peer.parse().unwrap()))
    }

    /// Not the oldest of all, but the silent one of the address that has most.
    #[test]
    fn at_the_bound_the_crowded_address_loses_a_silent_handshake() {
        let handshakes = Handshakes::new(4);
        let lonely = begin(&handshakes, "10.0.0.9");
        let spoken = begin(&handshakes, "10.0.0.1");
        spoken.has_sent();
        let silent = begin(&handshakes, "10.0.0.1");
        let second = begin(&handshakes, "10.0.0.1");
        let _new = begin(&handshakes, "10.0.0.2");
        assert!(silent.is_evicted() && is_evicted(&silent));
        assert!(!lonely.is_evicted() && !is_evicted(&lonely) && !is_evicted(&spoken) && !is_evicted(&second));
    }

    #[test]
    fn where_all_have_sent_something_the_oldest_of_the_crowded_address_goes() {
        let handshakes = Handshakes::new(3);
        let lonely = begin(&handshakes, "10.0.0.9");
        let (first, second) = (begin(&handshakes, "10.0.0.1"), begin(&handshakes, "10.0.0.1"));
        for slot in [&lonely, &first, &second] {
            slot.has_sent();
        }
        let _new = begin(&handshakes, "10.0.0.2");
        assert!(is_evicted(&first) && !is_evicted(&second) && !is_evicted(&lonely));
    }

    /// A client with a network of its own cannot pass for many.
    #[test]
    fn addresses_of_one_network_of_ipv6_count_together() {
        let handshakes = Handshakes::new(3);
        let other = begin(&handshakes, "2001:db8:0:2::1");
        let first = begin(&handshakes, "2001:db8:0:1::1");
        let second = begin(&handshakes, "2001:db8:0:1:ffff::2");
        assert_eq!((other.of_source, first.of_source, second.of_source), (1, 1, 2));
        let _new = begin(&handshakes, "10.0.0.1");
        assert!(is_evicted(&first) && !is_evicted(&other) && !is_evicted(&second));
        // An IPv4 client of a socket for both is no network of IPv6.
        assert_eq!(
            ClientNetwork::new("::ffff:10.0.0.1".parse().ok()),
            ClientNetwork::new("10.0.0.1".parse().ok())
        );
    }

    #[test]
    fn a_handshake_that_ends_frees_its_place() {
        let handshakes = Handshakes::new(2);
        let first = begin(&handshakes, "10.0.0.1");
        drop(begin(&handshakes, "10.0.0.1"));
        let second = begin(&handshakes, "10.0.0.1");
        assert!(!is_evicted(&first) && !is_evicted(&second));
        drop((first, second));
        assert_eq!(handshakes.open.lock().handshakes.len(), 0);
    }
}
