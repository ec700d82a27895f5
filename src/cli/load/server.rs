//! The target of the load.

use std::net::ToSocketAddrs as _;

use anyhow::{Context as _, Result, bail};
use socket2::SockAddr;
use weir_config::unix_path;

/// The target's address, and its authority: `HOST:PORT`, or that of this machine.
pub(super) struct Server {
    pub(super) address: SockAddr,
    pub(super) authority: String,
}

impl Server {
    /// Parses `http://HOST:PORT`, `https://HOST:PORT`, `HOST:PORT` or `unix:PATH`. A server on another machine needs `is_ours`.
    pub(super) fn parse(text: &str, is_ours: bool) -> Result<Self> {
        if let Some(path) = unix_path(text) {
            let path = path?;
            let address = SockAddr::unix(&path).with_context(|| path.display().to_string())?;
            return Ok(Self { address, authority: "localhost".to_owned() });
        }
        let bare = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let authority = bare.unwrap_or(text).trim_end_matches('/').to_owned();
        let expected = || {
            format!(
                "`{text}` is not the address of a server; expected HOST:PORT, http://HOST:PORT, https://HOST:PORT or unix:PATH"
            )
        };
        if authority.contains(['/', '@', ' ']) || !authority.contains(':') {
            bail!(expected());
        }
        let mut addresses = authority.to_socket_addrs().with_context(expected)?;
        let address = addresses.next().with_context(expected)?;
        let is_here = address.ip().is_loopback() && addresses.all(|other| other.ip().is_loopback());
        if !is_ours && !is_here {
            bail!(
                "{authority} is not on this machine. Load can be an attack: give --i-own-this-target if the \
                 server is yours, and nobody else depends on it now"
            );
        }
        Ok(Self { address: address.into(), authority })
    }
}

#[cfg(test)]
mod tests {
    use super::Server;

    #[test]
    fn only_our_own_machine_needs_no_word() {
        let parse = |text, is_ours| Server::parse(text, is_ours).map(|server| server.authority);
        for text in
            ["http://127.0.0.1:8081", "127.0.0.1:8081", "http://127.0.0.1:8081/", "127.9.9.9:1", "[::1]:80"]
        {
            assert!(parse(text, false).is_ok(), "{text}");
        }
        assert_eq!(parse("http://127.0.0.1:8081/", false).unwrap(), "127.0.0.1:8081");
        for text in ["192.0.2.1:8081", "[2001:db8::1]:80", "0.0.0.0:80", "[::ffff:192.0.2.1]:80"] {
            let refusal = parse(text, false).unwrap_err().to_string();
            assert!(refusal.contains("--i-own-this-target"), "{refusal}");
            assert!(parse(text, true).is_ok());
        }
        for text in ["", "127.0.0.1", "https://127.0.0.1", "ftp://127.0.0.1:1", "127.0.0.1:1/path", "a@b:1"] {
            assert!(parse(text, true).is_err(), "{text}");
        }
    }
}
