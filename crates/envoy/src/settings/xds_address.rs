//! The address of a control plane, and texts of pairs.

use std::fmt;

use weir_config::foreign::quote;

/// The most pairs of metadata or headers.
const MAX_PAIRS: usize = 64;

/// The address of a control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XdsAddress {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl XdsAddress {
    /// Parses `HOST:PORT`, as gRPC's `dns:///HOST:PORT` too. Errors show no user and no parameters.
    pub fn parse(text: &str) -> Result<Self, String> {
        let plain = text.strip_prefix("dns:").map_or(text, |rest| rest.trim_start_matches('/'));
        if let Some((scheme, _)) = plain.split_once("://") {
            let reason = "it has no scheme but `dns:///`; TLS is a setting of its own";
            return Err(format!("{} is not supported here: {reason}", quote(&format!("{scheme}://"))));
        }
        if plain.contains(['@', '?', '/']) {
            return Err("it must be HOST:PORT, without a user, a path or parameters".to_owned());
        }
        let wrong = || format!("{} is not HOST:PORT", quote(text));
        let (host, port) = plain.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let host = match bare {
            Some(address) if address.parse::<std::net::Ipv6Addr>().is_ok() => address,
            None if !host.is_empty() && host.bytes().all(fits) => host,
            _ => return Err(wrong()),
        };
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for XdsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Splits `KEY=VALUE,KEY=VALUE`, with this character between key and value; `None` if a part has no key.
#[must_use]
pub fn pairs(text: &str, between: char) -> Option<Vec<(&str, &str)>> {
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    let pairs: Option<Vec<_>> = parts
        .map(|part| part.split_once(between))
        .map(|pair| pair.map(|(key, value)| (key.trim(), value.trim())))
        .collect();
    pairs.filter(|pairs| pairs.len() <= MAX_PAIRS && pairs.iter().all(|(key, _)| !key.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_with_ports() {
        for (text, host, port) in [
            ("envoy-gateway:18001", "envoy-gateway", 18001),
            ("dns:///a.b:1", "a.b", 1),
            ("dns:a.b:1", "a.b", 1),
            ("[::1]:65535", "::1", 65535),
        ] {
            assert_eq!(XdsAddress::parse(text), Ok(XdsAddress { host: host.to_owned(), port }), "{text}");
        }
        for text in
            ["", "a", "a:0", "a:65536", ":1", "http://a:1", "u:p@a:1", "a:1?x", "a:1/x", "::1:1", "[a]:1"]
        {
            assert!(XdsAddress::parse(text).is_err(), "{text}");
        }
        assert!(!XdsAddress::parse("https://canary:x@a:1").unwrap_err().contains("canary"));
    }

    #[test]
    fn pairs_have_keys() {
        assert_eq!(pairs("a=b, c=d=e,", '='), Some(vec![("a", "b"), ("c", "d=e")]));
        assert_eq!(pairs("", '='), Some(Vec::new()));
        assert_eq!(pairs("authorization:Bearer x:y", ':'), Some(vec![("authorization", "Bearer x:y")]));
        assert_eq!((pairs("a", '='), pairs("=b", '=')), (None, None));
    }
}
