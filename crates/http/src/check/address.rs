//! The address of a client, from what proxies have appended to X-Forwarded-For.

use std::net::{IpAddr, Ipv6Addr};

use weir_config::Network;

/// The entry of X-Forwarded-For that is the client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AddressRule {
    /// Proxies in front, counted from the right; not used with `trusted`.
    pub(crate) hops: usize,
    /// Networks of proxies: the client is the last entry that is in none of them.
    pub(crate) trusted: Vec<Network>,
    /// The bits that an IPv6 address is cut to.
    pub(crate) ipv6_prefix: u8,
}

impl AddressRule {
    /// Returns the client of `forwarded`, all its lines joined; `None` if there are too few entries, or one of them is no
    /// address.
    pub(crate) fn client(&self, forwarded: &str) -> Option<String> {
        let mut entries = forwarded.rsplit(',').map(address);
        let found = if self.trusted.is_empty() {
            entries.nth(self.hops.checked_sub(1)?)??
        } else {
            let mut last = None;
            for entry in entries {
                let entry = entry?;
                last = Some(entry);
                if !self.trusted.iter().any(|network| network.has(entry)) {
                    break;
                }
            }
            last?
        };
        Some(match found {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => {
                let cut = u32::from(128 - self.ipv6_prefix.min(128));
                let bits = u128::from(address).checked_shr(cut).and_then(|bits| bits.checked_shl(cut));
                Ipv6Addr::from(bits.unwrap_or(0)).to_string()
            }
        })
    }
}

/// Parses an address, also with a port, brackets or a zone.
fn address(entry: &str) -> Option<IpAddr> {
    let text = entry.trim();
    let is_port =
        |port: &str| (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let bare = match text.strip_prefix('[') {
        Some(rest) => {
            let (inner, after) = rest.split_once(']')?;
            if !after.is_empty() && !after.strip_prefix(':').is_some_and(is_port) {
                return None;
            }
            inner
        }
        None => match text.split_once(':') {
            Some((host, port)) if is_port(port) && host.contains('.') => host,
            _ => text,
        },
    };
    let bare = bare.split('%').next().unwrap_or_default();
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(hops: usize, trusted: &[&str], forwarded: &str) -> Option<String> {
        let trusted = trusted.iter().map(|network| Network::read(network).unwrap()).collect();
        AddressRule { hops, trusted, ipv6_prefix: 64 }.client(forwarded)
    }

    #[test]
    fn proxies_are_counted_from_the_right() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(client(1, &[], "6.6.6.6, 1.2.3.4"), some("1.2.3.4"));
        assert_eq!(client(2, &[], "6.6.6.6, 1.2.3.4:55, 10.0.0.1"), some("1.2.3.4"));
        assert_eq!(client(1, &[], "[2001:db8:1:2:3::4]:99"), some("2001:db8:1:2::"));
        assert_eq!(client(1, &[], "fe80::1%eth0"), some("fe80::"));
        assert_eq!(client(1, &[], "::ffff:1.2.3.4"), some("1.2.3.4"));
        for (hops, bad) in
            [(1, ""), (2, "1.2.3.4"), (1, "1.2.3.4, unknown"), (1, "1.2.3.4,"), (1, "a.b:1"), (1, "[::1]x")]
        {
            assert_eq!(client(hops, &[], bad), None, "{bad:?}");
        }
    }

    #[test]
    fn trusted_proxies_are_passed_over() {
        let trusted = ["10.0.0.0/8", "fd00::/8"];
        assert_eq!(client(1, &trusted, "6.6.6.6, 1.2.3.4, 10.0.0.2, fd00::1"), Some("1.2.3.4".to_owned()));
        assert_eq!(client(1, &trusted, "10.0.0.3"), Some("10.0.0.3".to_owned()));
        assert_eq!(client(1, &trusted, "1.2.3.4, x, 10.0.0.2"), None);
    }
}
