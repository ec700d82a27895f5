//! Networks of addresses, and finding the first that holds an address.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::sibling::SiblingIndex;

/// A network, such as `10.0.0.0/8` or `2001:db8::/32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    network: IpAddr,
    length: u8,
}

/// Reasons why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCidr {
    /// Not an address, or not followed by a length.
    #[error("it is no network; write an address and the length of its prefix, such as 10.0.0.0/8")]
    Malformed,
    /// Longer than the address.
    #[error("the length of its prefix must be at most {0}")]
    TooLong(u8),
    /// Bits behind the prefix, which would be ignored.
    #[error("it has bits set behind its prefix; write {0}")]
    HostBits(Cidr),
}

impl FromStr for Cidr {
    type Err = InvalidCidr;

    /// A single address is a network of one.
    fn from_str(text: &str) -> Result<Self, InvalidCidr> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidCidr::Malformed)?;
        let longest = bits(address);
        let length = match length {
            None => longest,
            Some(text) if text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().map_err(|_| InvalidCidr::TooLong(longest))?
            }
            Some(_) => return Err(InvalidCidr::Malformed),
        };
        if length > longest {
            return Err(InvalidCidr::TooLong(longest));
        }
        let cidr = Self { network: masked(address, length), length };
        if cidr.network == address { Ok(cidr) } else { Err(InvalidCidr::HostBits(cidr)) }
    }
}

impl Cidr {
    /// True if it contains `address`. An IPv4-mapped IPv6 address counts as IPv4.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.network.is_ipv4() && masked(address, self.length) == self.network
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.length)
    }
}

/// Many networks with the place of each: a hash per length of prefix that is in use.
#[derive(Debug)]
pub(super) struct Cidrs {
    lengths: Vec<u8>,
    first: HashMap<Cidr, SiblingIndex>,
}

impl Cidrs {
    pub(super) fn new(networks: Vec<(Cidr, SiblingIndex)>) -> Self {
        let lengths: BTreeSet<u8> = networks.iter().map(|(cidr, _)| cidr.length).collect();
        let mut first: HashMap<Cidr, SiblingIndex> = HashMap::with_capacity(networks.len());
        for (cidr, place) in networks {
            first.entry(cidr).and_modify(|first| *first = place.min(*first)).or_insert(place);
        }
        Self { lengths: lengths.into_iter().collect(), first }
    }

    /// The first place in the file with a network that holds the address which `value` is.
    pub(super) fn first(&self, value: &str) -> Option<SiblingIndex> {
        let address = value.parse::<IpAddr>().ok()?.to_canonical();
        let lengths = self.lengths.iter().take_while(|&&length| length <= bits(address));
        let place = |&length: &u8| self.first.get(&Cidr { network: masked(address, length), length });
        lengths.filter_map(place).min().copied()
    }
}

const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first `length` bits of `address`, and zeros.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(length)).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(length)).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}
