//! Addresses as Go's `net.Listen` reads them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use weir_config::foreign::quote;

use super::extra_tags;
use super::given::RatelimitGiven;
use super::values::integer;
use crate::ratelimit::RatelimitPorts;

/// Names and values.
type Labels = Vec<(String, String)>;

/// Reads the addresses of everything but gRPC, and the labels of every metric.
pub(super) fn ports(given: &mut RatelimitGiven) -> Option<(RatelimitPorts, Labels)> {
    let http = address(given, "HOST", "PORT", 8080);
    let debug = address(given, "DEBUG_HOST", "DEBUG_PORT", 6070);
    let needs_domain = given.boolean("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED").unwrap_or(false);
    let serves = given.boolean("USE_PROMETHEUS").unwrap_or(false);
    let metrics = match serves && !given.boolean("DISABLE_STATS").unwrap_or(false) {
        true => Some((host_port(given, "PROMETHEUS_ADDR", ":9090")?, path(given)?)),
        false => None,
    };
    let labels = extra_tags::labels(given)?;
    Some((RatelimitPorts { http: http?, debug: debug?, metrics, needs_domain }, labels))
}

/// Reads a host and a port from two variables.
pub(super) fn address(
    given: &mut RatelimitGiven,
    host: &str,
    port: &str,
    default: u16,
) -> Option<SocketAddr> {
    let number = given.integer(port).and_then(|number| u16::try_from(number).ok()).unwrap_or(default);
    match self::host(given.text(host).unwrap_or_default()) {
        Ok(ip) => Some(SocketAddr::new(ip, number)),
        Err(reason) => {
            given.wrong(host, reason);
            None
        }
    }
}

fn host_port(given: &mut RatelimitGiven, name: &str, default: &str) -> Option<SocketAddr> {
    let text = given.text(name).unwrap_or(default).to_owned();
    let parsed = match text.rsplit_once(':') {
        None => Err(format!("{} has no port; write HOST:PORT or :PORT", quote(&text))),
        Some((host, port)) => {
            let port = integer(port).ok().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
            let port = port.ok_or_else(|| format!("{}: the port must be from 1 to 65535", quote(&text)));
            port.and_then(|port| Ok(SocketAddr::new(self::host(host)?, port)))
        }
    };
    parsed.map_err(|reason| given.wrong(name, reason)).ok()
}

/// Reads the path of the metrics.
fn path(given: &mut RatelimitGiven) -> Option<String> {
    const NAME: &str = "PROMETHEUS_PATH";
    let text = given.text(NAME).unwrap_or("/metrics").to_owned();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._".contains(&byte);
    if text.starts_with('/') && text.len() <= 256 && text.bytes().all(plain) {
        return Some(text);
    }
    given.wrong(NAME, format_args!("{} is not a path, such as /metrics", quote(&text)));
    None
}

/// Reads a host: nothing and `0.0.0.0` are all addresses of both families, as `::` is.
fn host(text: &str) -> Result<IpAddr, String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match bare {
        "" => Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        _ => match bare.parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() => Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
            Ok(ip) => Ok(ip),
            Err(_) => Err(format!("{} is not an IP address, nor localhost", quote(text))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_those_of_both_families() {
        for text in ["", "0.0.0.0", "::", "[::]"] {
            assert_eq!(host(text), Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)), "{text}");
        }
        assert_eq!(host("127.0.0.1"), Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert_eq!(host("localhost"), Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(host("weir.example").is_err());
    }
}
