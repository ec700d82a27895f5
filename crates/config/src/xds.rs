//! The section `envoy.xds`: a control plane that sends Envoy's domains.

use std::fmt;
use std::path::PathBuf;

use super::errors::MistakeReport;
use super::fields::Mapping;
use super::given::Outside;
use super::overrides::ConfigOverrides;
use super::report_given::report_given;
use super::secret::missing;
use super::table::{Applies, Entry, XDS_SERVER, XdsConfig, XdsTlsConfig};
use super::values::quote;
use super::xds_tls_names::XdsTlsNames;

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

/// Reads the section in `envoy`, if it is there.
pub(super) fn xds(
    envoy: &mut Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<XdsConfig> {
    let mut section = envoy.section("xds", report);
    if !section.is_present() && !overrides.given.has_section(&envoy.path_of("xds")) {
        return None;
    }
    let xds = XdsConfig::read(&mut section, &overrides.given, report);
    let server = server(&mut section, overrides, report);
    let tls = tls(&mut section, overrides, report);
    let is_wrong =
        |text: &Option<String>, between| text.as_deref().is_some_and(|text| pairs(text, between).is_none());
    if is_wrong(&xds.node_metadata, '=') {
        wrong("node_metadata", "it must be KEY=VALUE,KEY=VALUE", &section, overrides, report);
    }
    let headers =
        xds.call_headers.as_ref().and_then(|headers| headers.read().ok()).map(|text| text.into_owned());
    if is_wrong(&headers, ':') {
        wrong("call_headers", "it must be NAME:VALUE,NAME:VALUE", &section, overrides, report);
    }
    if xds.max_backoff < xds.min_backoff {
        wrong("max_backoff", "must be at least `min_backoff`", &section, overrides, report);
    }
    section.finish(report);
    Some(XdsConfig { server: server.unwrap_or_default(), tls, ..xds })
}

fn server(
    section: &mut Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<String> {
    let entry = Entry {
        key: "server",
        about: "",
        default: None,
        kind: XDS_SERVER,
        outside: Outside::No,
        applies: Applies::AtRestart,
        more: "",
    };
    let is_given = section.take("server").is_some()
        || overrides.given.at(&Outside::No, &section.path_of("server")).text.is_some();
    let server = section.value(entry, &overrides.given, report);
    if !is_given && section.is_whole() {
        section.report("server", report, "is missing; it is the address of the control plane, HOST:PORT");
    }
    let server = server?;
    if let Err(reason) = XdsAddress::parse(&server) {
        wrong("server", &reason, section, overrides, report);
        return None;
    }
    Some(server)
}

fn tls(
    fields: &mut Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Option<XdsTlsConfig> {
    let mut section = fields.section("tls", report);
    if !section.is_present() && !overrides.given.has_section(&fields.path_of("tls")) {
        return None;
    }
    let tls = XdsTlsConfig::read(&mut section, &overrides.given, report);
    match (&tls.cert_file, &tls.key_file) {
        (Some(_), None) => wrong("cert_file", "needs `key_file`", &section, overrides, report),
        (None, Some(_)) => wrong("key_file", "needs `cert_file`", &section, overrides, report),
        _ => {}
    }
    let files: [(&str, &Option<PathBuf>); 3] =
        [("ca_file", &tls.ca_file), ("cert_file", &tls.cert_file), ("key_file", &tls.key_file)];
    for (name, path) in files {
        if let Some(reason) = path.as_deref().and_then(missing) {
            report.missing(|report| wrong(name, &reason, &section, overrides, report));
        }
    }
    let names = XdsTlsNames(XdsTlsNames::KEYS.map(|key| overrides.given.name_of(&section.path_of(key))));
    section.finish(report);
    Some(XdsTlsConfig { names, ..tls })
}

/// Reports a mistake of a setting where it is given.
fn wrong(
    name: &str,
    reason: &str,
    section: &Mapping<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) {
    report_given((name, &Outside::No), reason, section, overrides, report);
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
