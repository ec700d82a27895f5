//! The time that a worker gives to signatures of JWTs that it does not know: a tenth, half of which is kept for peers
//! that have used little. So one address with wrong signatures does not keep the callers at other addresses out.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::client_network::ClientNetwork;

/// The reciprocal of each half's share of a worker's time.
const HALF: u32 = 20;

/// The reciprocal of the share below which a peer has used little.
const LITTLE: u32 = 200;

/// The time that each may spend at once: a half that was quiet, and a peer that was.
const BURST: Duration = Duration::from_millis(10);
const PEER_BURST: Duration = Duration::from_millis(2);

/// Peers whose use is known. Others count as those that have used much.
const MAX_PEERS: usize = 1_024;

#[derive(Debug)]
pub(super) struct SignatureTime {
    /// For everybody.
    common: Debt,
    /// For peers that have used little.
    kept: Debt,
    peers: HashMap<ClientNetwork, Debt>,
}

/// Source of the time of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignatureHalf {
    Common,
    Kept,
}

/// Time at which all signatures so far have been paid for with other time. It may lie ahead by a burst, and by one signature.
#[derive(Debug, Clone, Copy)]
struct Debt {
    paid: Instant,
}

impl Debt {
    fn has_some(&mut self, now: Instant, (share, burst): (u32, Duration)) -> bool {
        self.paid = self.paid.max(now);
        self.paid - now < burst * share
    }

    fn spend(&mut self, took: Duration, (share, burst): (u32, Duration)) {
        // A thread that the system stopped meanwhile does not stop those who come next for much longer.
        self.paid += took.min(burst) * share;
    }
}

impl SignatureTime {
    const OF_HALF: (u32, Duration) = (HALF, BURST);
    const OF_PEER: (u32, Duration) = (LITTLE, PEER_BURST);

    pub(super) fn new(now: Instant) -> Self {
        let none = Debt { paid: now };
        Self { common: none, kept: none, peers: HashMap::new() }
    }

    /// Returns the source of the time of a signature of this peer; `None` if there is none now.
    pub(super) fn half_for(&mut self, now: Instant, peer: ClientNetwork) -> Option<SignatureHalf> {
        if self.common.has_some(now, Self::OF_HALF) {
            return Some(SignatureHalf::Common);
        }
        let uses_little = match self.peers.get_mut(&peer) {
            Some(debt) => debt.has_some(now, Self::OF_PEER),
            None => self.peers.len() < MAX_PEERS || self.forget(now),
        };
        (uses_little && self.kept.has_some(now, Self::OF_HALF)).then_some(SignatureHalf::Kept)
    }

    pub(super) fn spend(&mut self, took: Duration, half: SignatureHalf, now: Instant, peer: ClientNetwork) {
        match half {
            SignatureHalf::Common => self.common.spend(took, Self::OF_HALF),
            SignatureHalf::Kept => self.kept.spend(took, Self::OF_HALF),
        }
        if self.peers.contains_key(&peer) || self.peers.len() < MAX_PEERS || self.forget(now) {
            let debt = self.peers.entry(peer).or_insert(Debt { paid: now });
            debt.paid = debt.paid.max(now);
            debt.spend(took, Self::OF_PEER);
        }
    }

    /// Forgets peers that have paid for all. Returns true if there is room then.
    fn forget(&mut self, now: Instant) -> bool {
        self.peers.retain(|_, debt| debt.paid > now);
        self.peers.len() < MAX_PEERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Duration = Duration::from_micros(100);

    fn peer(text: &str) -> ClientNetwork {
        ClientNetwork::new(Some(text.parse().unwrap()))
    }

    fn asks(time: &mut SignatureTime, now: Instant, peer: ClientNetwork) -> bool {
        let half = time.half_for(now, peer);
        half.inspect(|half| time.spend(ONE, *half, now, peer)).is_some()
    }

    /// One address gets a twentieth of the time, and a little of the other half.
    #[test]
    fn signatures_of_one_address_get_half_of_a_tenth_and_strangers_the_rest() {
        let start = weir_time::clock::monotonic();
        let mut time = SignatureTime::new(start);
        let (flood, honest) = (peer("10.0.0.1"), peer("10.0.0.2"));
        let (mut flooded, mut refused) = (0_u32, 0);
        for step in 0..1_000_000_u32 {
            let now = start + Duration::from_micros(10) * step;
            flooded += u32::from(asks(&mut time, now, flood));
            // 20 new callers a second, of another address.
            if step % 5_000 == 0 && !asks(&mut time, now, honest) {
                refused += 1;
            }
        }
        assert_eq!(refused, 0, "no honest caller is kept out");
        let spent = (ONE * flooded).as_secs_f64();
        assert!((0.5..0.6).contains(&spent), "{spent} s of 10 s");
    }

    #[test]
    fn many_addresses_together_get_a_tenth() {
        let start = weir_time::clock::monotonic();
        let mut time = SignatureTime::new(start);
        let mut spent = 0_u32;
        for step in 0..1_000_000_u32 {
            let now = start + Duration::from_micros(10) * step;
            let one = peer(&format!("10.0.{}.{}", step / 250 % 40, step % 250));
            spent += u32::from(asks(&mut time, now, one));
            assert!(time.peers.len() <= MAX_PEERS);
        }
        let spent = (ONE * spent).as_secs_f64();
        assert!((0.95..1.05).contains(&spent), "{spent} s of 10 s");
    }
}
