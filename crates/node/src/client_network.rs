//! Networks of clients, whose members are counted together.

use std::net::{IpAddr, Ipv6Addr};

use weir_grpc::PeerAddress;

/// The address of a client, and of IPv6 its network of 64 bits: one client may have all addresses of it. Clients without an
/// address, which are on this machine, count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientNetwork(Option<IpAddr>);

impl ClientNetwork {
    pub(crate) fn new(address: Option<IpAddr>) -> Self {
        Self(address.map(|address| match address.to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
            ip => ip,
        }))
    }

    pub(crate) fn from_peer(peer: &PeerAddress) -> Self {
        Self::new(match peer {
            PeerAddress::Tcp(address) => Some(address.ip()),
            PeerAddress::Unix { .. } | PeerAddress::Unknown => None,
        })
    }
}
