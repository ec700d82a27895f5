//! Addresses of Redis. Checked here, so that a mistake is told when the file is read and not when the
//! first call comes.

use super::values::{Digits, Scalar, digits, quote};

/// The longest host name that DNS has, in bytes.
const MAX_HOST: usize = 253;

/// `redis://HOST:PORT` with the port filled in, or why it is none.
///
/// An address with a user or a password is not shown in the reason: it would end up in a log.
pub(super) fn redis_url(scalar: Scalar<'_>) -> Result<String, String> {
    let url = scalar.text;
    if url.contains('@') {
        return Err("a user or password in an address is not supported yet".to_owned());
    }
    let shown = quote(url);
    let authority = match url.split_once("://") {
        Some(("redis", rest)) => rest,
        Some(("rediss", _)) => return Err(format!("{shown}: TLS (rediss://) is not supported yet")),
        _ => return Err(format!("{shown} is not an address of Redis; write redis://HOST:PORT")),
    };
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    if authority.contains(['/', '?', '#']) {
        return Err(format!(
            "{shown}: a database number or parameters are not supported yet; write redis://HOST:PORT"
        ));
    }
    let (host, port) = split_port(authority);
    if !is_host(host) {
        return Err(format!("{shown}: {} is not a host name or an IP address", quote(host)));
    }
    match port.map_or(Digits::Number(6379), digits) {
        Digits::Number(port @ 1..=65535) => Ok(format!("redis://{host}:{port}")),
        _ => Err(format!("{shown}: {} is not a port from 1 to 65535", quote(port.unwrap_or_default()))),
    }
}

/// Host and port; the colons of an IPv6 address stand in brackets.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    let after_host = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    match authority.get(after_host..).and_then(|rest| rest.find(':')) {
        Some(colon) => {
            let (host, port) = authority.split_at(after_host + colon);
            (host, port.strip_prefix(':'))
        }
        None => (authority, None),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (1..=MAX_HOST).contains(&host.len()) && host.bytes().all(known)
}
