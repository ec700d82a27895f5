//! The check of a request's host. A web page that rebinds its own name to this machine's address is of the same origin
//! as the port for the browser, so that the name is all that gives it away.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

/// Names that a port answers to, in lower case; `None` if it answers to every name.
#[derive(Debug)]
pub(super) struct KnownHosts(Option<Vec<String>>);

/// A request with two `Host` lines (RFC 9112, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TwoHosts;

impl KnownHosts {
    /// Names beside `localhost` and addresses.
    pub(super) const fn new(names: Vec<String>) -> Self {
        Self(Some(names))
    }

    pub(super) const fn all() -> Self {
        Self(None)
    }

    /// Checks that the request names a known host, in its `Host` line and in its target. HTTP/2 has the host in the target.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<bool, TwoHosts> {
        let mut lines = headers.get_all(header::HOST).iter();
        let line = lines.next().map(|host| host.to_str().unwrap_or_default());
        if lines.next().is_some() {
            return Err(TwoHosts);
        }
        let target = uri.authority().map(|authority| authority.as_str());
        let is_named = line.is_some() || target.is_some();
        Ok(self.0.is_none() || is_named && [line, target].into_iter().flatten().all(|host| self.has(host)))
    }

    /// True for a name that no web page can have: an address, `localhost`, or one of the configuration.
    fn has(&self, host: &str) -> bool {
        let Some(names) = &self.0 else { return true };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let name = name.to_ascii_lowercase();
        name == "localhost" || name.parse::<IpAddr>().is_ok() || names.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn known() -> KnownHosts {
        KnownHosts::new(vec!["weir.internal".to_owned()])
    }

    #[test]
    fn only_names_that_no_page_can_have_are_known() {
        for good in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "localhost",
            "LOCALHOST:1",
            "weir.internal:8080",
        ] {
            assert!(known().has(good), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            ":8080",
        ] {
            assert!(!known().has(bad), "{bad}");
            assert!(KnownHosts::all().has(bad), "{bad}");
        }
    }

    #[test]
    fn the_line_and_the_target_must_both_be_known() {
        let check = |target: &'static str, lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::HOST, HeaderValue::from_static(line));
            }
            known().check(&Uri::from_static(target), &headers)
        };
        assert_eq!(check("/", &["localhost"]), Ok(true));
        assert_eq!(check("http://localhost:8080/", &[]), Ok(true), "HTTP/2");
        assert_eq!(check("http://evil.example/", &["localhost"]), Ok(false));
        assert_eq!(check("http://localhost/", &["evil.example"]), Ok(false));
        assert_eq!(check("/", &[]), Ok(false));
        assert_eq!(check("/", &["localhost", "localhost"]), Err(TwoHosts));
        assert_eq!(
            KnownHosts::all().check(&Uri::from_static("/"), &HeaderMap::new()),
            Ok(true),
            "a port of every name"
        );
    }
}
