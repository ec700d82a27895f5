//! Names of callers: from certificates, and from the header of a proxy. No source yields a name of another kind.

use weir_config::{MAX_CALLER, is_dns_name, is_spiffe_id};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The name of a caller. A certificate with several DNS names has several.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallerName(Box<[Box<str>]>);

impl CallerName {
    /// The name of callers without a credential.
    pub const ANONYMOUS: &'static str = "anonymous";

    /// The name of a verified certificate without a name that can be used, where such are served. No rule can name it.
    pub(super) const NAMELESS: &'static str = "certificate";

    /// Wraps one name.
    pub fn one(name: &str) -> Self {
        Self([name.into()].into())
    }

    /// Returns the name that logs show: the first by bytes.
    pub fn shown(&self) -> &str {
        self.0.first().map_or("", |first| first)
    }

    /// Returns all names, sorted by bytes.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }

    /// True for callers without a credential.
    pub fn is_anonymous(&self) -> bool {
        self.shown() == Self::ANONYMOUS
    }

    /// Reads the name of a verified certificate in DER; `None` if it has none that can be used.
    pub fn of_certificate(der: &[u8]) -> Option<Self> {
        let (rest, certificate) = X509Certificate::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let names = certificate.subject_alternative_name().ok()??;
        let (mut ids, mut dns) = (Vec::new(), Vec::new());
        for name in &names.value.general_names {
            match name {
                GeneralName::URI(uri) if is_spiffe_scheme(uri) => ids.push(*uri),
                GeneralName::DNSName(name) => dns.push(format!("dns:{}", name.to_ascii_lowercase())),
                _ => {}
            }
        }
        match ids[..] {
            [] => {}
            [id] if is_spiffe_id(id) => return Some(Self::one(id)),
            // Several SPIFFE IDs, or an invalid one: it is not clear who this is.
            _ => return None,
        }
        dns.retain(|name| name.strip_prefix("dns:").is_some_and(is_dns_name) && name.len() <= MAX_CALLER);
        dns.sort_unstable();
        dns.dedup();
        (!dns.is_empty()).then(|| Self(dns.into_iter().map(Into::into).collect()))
    }

    /// Reads the URI of the last element of `x-forwarded-client-cert`; `None` if it is no valid SPIFFE ID.
    pub fn of_forwarded(header: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(header).ok()?;
        let last = split(text, ',')?.pop()?;
        let mut uris = Vec::new();
        for pair in split(last, ';')? {
            let (key, value) = pair.split_once('=')?;
            if key.trim().eq_ignore_ascii_case("uri") {
                uris.push(unquoted(value.trim())?);
            }
        }
        let ids: Vec<&str> = uris.into_iter().filter(|uri| is_spiffe_scheme(uri)).collect();
        match ids[..] {
            [id] if is_spiffe_id(id) => Some(Self::one(id)),
            _ => None,
        }
    }
}

fn is_spiffe_scheme(uri: &str) -> bool {
    uri.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("spiffe:"))
}

/// Splits at a separator outside of quotes; `None` if a quote is not closed.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if char == separator && !quoted => {
                parts.push(text.get(start..at)?);
                start = at + char.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text.get(start..)?);
    (!quoted).then_some(parts)
}

/// A value without its quotes. No SPIFFE ID has a character that needs a backslash.
fn unquoted(value: &str) -> Option<&str> {
    let inner = match value.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?,
        None => value,
    };
    (!inner.contains(['"', '\\'])).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(header: &str) -> Option<String> {
        CallerName::of_forwarded(header.as_bytes()).map(|name| name.shown().to_owned())
    }

    #[test]
    fn the_last_element_of_a_proxys_header_names_the_caller() {
        let name = Some("spiffe://prod/shop".to_owned());
        assert_eq!(forwarded("By=spiffe://prod/weir;Hash=ab;URI=spiffe://prod/shop"), name);
        assert_eq!(forwarded("URI=spiffe://evil/x,Hash=1;URI=spiffe://prod/shop"), name);
        assert_eq!(forwarded("Subject=\"CN=a,b;c\";URI=\"spiffe://prod/shop\""), name);
        assert_eq!(forwarded("URI=https://x.example;URI=spiffe://prod/shop"), name);
        for bad in [
            "",
            "URI=",
            "Hash=1",
            "URI=spiffe://prod/shop,",
            "URI=spiffe://prod/shop,Hash=1",
            "URI=dns:shop",
            "URI=token:shop",
            "URI=anonymous",
            "URI=uid:0",
            "URI=spiffe://Prod/shop",
            "URI=spiffe://a/b;URI=spiffe://c/d",
            "URI=\"spiffe://a/b",
            "Subject=\"URI=spiffe://a/b\"",
            "DNS=shop.example",
            "URI=jwt:x:y",
            "URI=spiffe://a/b\\,",
        ] {
            assert_eq!(forwarded(bad), None, "{bad}");
        }
        assert_eq!(CallerName::of_forwarded(b"URI=spiffe://a/\xff"), None);
    }

    #[test]
    fn what_is_no_certificate_has_no_name() {
        for bytes in [&b""[..], b"x", &[0x30, 0x82, 0xff, 0xff], &[0; 1000]] {
            assert_eq!(CallerName::of_certificate(bytes), None);
        }
    }
}
