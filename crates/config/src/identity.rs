//! The `server.identity` section: where the names of callers come from.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use super::callers::{MAX_CALLER, is_claim, is_trust_domain};
use super::errors::MistakeReport;
use super::fields::{KeyedValue, MAX_PATH, Mapping, NamedNode};
use super::jwks::{JwtAlgorithm, read_jwks};
use super::tokens::read_tokens;
use super::values::{Scalar, choice, quote, text_within};

/// The most issuers of JWTs.
pub(super) const MAX_ISSUERS: usize = 64;

/// The longest issuer, audience and claim, in bytes.
pub(super) const MAX_JWT_TEXT: usize = 1024;

/// The most networks whose `x-forwarded-client-cert` is read.
pub(super) const MAX_NETWORKS: usize = 1000;

/// The most SPIFFE trust domains.
pub(super) const MAX_TRUST_DOMAINS: usize = 1000;

/// The sources of names beside client certificates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdentityConfig {
    /// The file of tokens.
    pub tokens_file: Option<PathBuf>,
    /// The issuers of JWTs.
    pub jwt: Vec<JwtIssuer>,
    /// The peers whose `x-forwarded-client-cert` is read.
    pub forwarded_from: Vec<Network>,
    /// The files of the authorities of SPIFFE trust domains. If there are any, IDs of other domains are refused.
    pub trust_domains: BTreeMap<String, PathBuf>,
}

/// An issuer of JWTs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtIssuer {
    /// The file of its keys.
    pub jwks_file: PathBuf,
    /// The claim `iss` of its tokens.
    pub issuer: String,
    /// The claim `aud` of its tokens, or one of several.
    pub audience: String,
    /// The algorithms that its tokens may have.
    pub algorithms: Vec<JwtAlgorithm>,
    /// The claim that names the caller.
    pub claim: String,
}

/// A network: an address, and the bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// True if the address is in the network. An IPv4 address may be written as IPv6.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        let same = |one: u128, other: u128, bits: u32, size: u32| {
            let shift = size - bits;
            shift >= size || one >> shift == other >> shift
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                same(u32::from(one).into(), u32::from(other).into(), self.bits.into(), 32)
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => same(one.into(), other.into(), self.bits.into(), 128),
            _ => false,
        }
    }

    /// Parses a network, such as `10.0.0.0/8`.
    pub fn read(text: &str) -> Result<Self, String> {
        let fault = || format!("{} is no network, such as 127.0.0.1/32 or fd00::/8", quote(text));
        let (address, bits) = text.split_once('/').ok_or_else(fault)?;
        let (address, digits) = (address.parse::<IpAddr>().map_err(|_| fault())?, bits);
        let bits = digits.parse::<u8>().ok().filter(|bits| bits.to_string() == digits).ok_or_else(fault)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if bits > most || address != address.to_canonical() {
            return Err(fault());
        }
        Ok(Self { address, bits })
    }
}

/// Reads the section; `None` without it.
pub(super) fn identity(mut fields: Mapping<'_>, report: &mut MistakeReport) -> Option<IdentityConfig> {
    if !fields.is_present() {
        return None;
    }
    let tokens_file = fields.take("tokens_file").and_then(|value| tokens_file(&value, report));
    let jwt = fields.take("jwt").map_or_else(Vec::new, |value| issuers(&value, report));
    let mut forwarded = fields.section("forwarded_client_cert", report);
    let forwarded_from = match forwarded.is_present() {
        true => networks(&mut forwarded, report),
        false => Vec::new(),
    };
    forwarded.finish(report);
    let trust_domains =
        fields.take("trust_domains").map_or_else(BTreeMap::new, |value| domains(&value, report));
    fields.finish(report);
    Some(IdentityConfig { tokens_file, jwt, forwarded_from, trust_domains })
}

fn domains(value: &NamedNode<'_>, report: &mut MistakeReport) -> BTreeMap<String, PathBuf> {
    let entries = value.entries(report).unwrap_or_default();
    if entries.len() > MAX_TRUST_DOMAINS {
        value.report(report, format!("has {} trust domains: at most {MAX_TRUST_DOMAINS}", entries.len()));
        return BTreeMap::new();
    }
    entries.iter().filter_map(|entry| domain(entry, report)).collect()
}

fn domain(entry: &KeyedValue<'_>, report: &mut MistakeReport) -> Option<(String, PathBuf)> {
    let (name, value) = (entry.name, &entry.value);
    if !is_trust_domain(name) {
        let reason = format!(
            "{} is no trust domain: 1 to 255 lower-case letters, digits, dots, hyphens and underscores",
            quote(name)
        );
        value.report(report, reason);
        return None;
    }
    let path = value.read(report, path)?;
    let path = report.resolve(value.at(), &path);
    if !path.is_file() {
        let reason = format!("{} is no file", quote(&path.display().to_string()));
        report.missing(|report| value.report(report, reason.clone()));
    }
    Some((name.to_owned(), path))
}

fn path(scalar: Scalar<'_>) -> Result<PathBuf, String> {
    text_within(scalar, MAX_PATH).map(PathBuf::from)
}

fn tokens_file(value: &NamedNode<'_>, report: &mut MistakeReport) -> Option<PathBuf> {
    let path = value.read(report, path)?;
    let path = report.resolve(value.at(), &path);
    if let Err(mistakes) = read_tokens(&path) {
        report_file(value, &path, mistakes, report);
    }
    Some(path)
}

/// Reports the mistakes of a file; one that is missing may exist on the target machine of a check.
fn report_file(
    value: &NamedNode<'_>,
    path: &std::path::Path,
    mistakes: Vec<String>,
    report: &mut MistakeReport,
) {
    let add =
        |report: &mut MistakeReport| mistakes.into_iter().for_each(|mistake| value.report(report, mistake));
    if path.exists() { add(report) } else { report.missing(add) }
}

fn issuers(value: &NamedNode<'_>, report: &mut MistakeReport) -> Vec<JwtIssuer> {
    let items = value.items(report).unwrap_or_default();
    if items.len() > MAX_ISSUERS {
        value.report(report, format!("has {} issuers: at most {MAX_ISSUERS}", items.len()));
        return Vec::new();
    }
    let mut issuers: Vec<JwtIssuer> = Vec::new();
    for item in &items {
        let Some(issuer) = issuer(item, report) else { continue };
        let clash = issuers.iter().find(|other| {
            let (one, other) = (&issuer.issuer, &other.issuer);
            one == other || begins(one, other) || begins(other, one)
        });
        if let Some(other) = clash {
            let reason = format!(
                "the issuers {} and {} can give one name to two callers: names are jwt:ISSUER:CLAIM",
                quote(&other.issuer),
                quote(&issuer.issuer)
            );
            item.report(report, reason);
        }
        issuers.push(issuer);
    }
    issuers
}

/// True if `long` is `short`, a colon and more.
fn begins(long: &str, short: &str) -> bool {
    long.strip_prefix(short).is_some_and(|rest| rest.starts_with(':'))
}

fn issuer(item: &NamedNode<'_>, report: &mut MistakeReport) -> Option<JwtIssuer> {
    let mut fields = Mapping::new(item, report);
    let file = fields.require("jwks_file", "name the file of the issuer's keys", report);
    let path = file.as_ref().and_then(|value| {
        let path = value.read(report, path)?;
        Some(report.resolve(value.at(), &path))
    });
    let text = |s: Scalar<'_>| {
        let text = text_within(s, MAX_JWT_TEXT)?;
        if is_claim(&text) { Ok(text) } else { Err(format!("{} has control characters", quote(&text))) }
    };
    let issuer = fields.require("issuer", "give it the claim `iss` of its tokens", report);
    let issuer = issuer.and_then(|value| value.read(report, text));
    let audience = fields.require("audience", "give it the claim `aud` that tokens for Weir have", report);
    let audience = audience.and_then(|value| value.read(report, text));
    let algorithms = fields.require("algorithms", "list some of RS256, ES256 and EdDSA", report);
    let algorithms = algorithms.and_then(|value| {
        let items = value.items(report)?;
        if items.is_empty() && !value.is_cut() {
            value.report(report, "must not be empty");
        }
        Some(
            items
                .iter()
                .filter_map(|item| item.read(report, |s| choice(s, &JwtAlgorithm::ALL)))
                .collect::<Vec<_>>(),
        )
    });
    let claim = fields.read("claim", report, text).unwrap_or_else(|| "sub".to_owned());
    fields.finish(report);
    if let Some((value, path)) = file.zip(path.as_ref()) {
        match read_jwks(path) {
            Ok(keys) => {
                let has_none =
                    |algorithms: &Vec<_>| !keys.iter().any(|key| algorithms.contains(&key.algorithm));
                if algorithms.as_ref().is_some_and(has_none) {
                    value.report(report, format!("{}: has no key for `algorithms`", path.display()));
                }
            }
            Err(mistakes) => report_file(&value, path, mistakes, report),
        }
    }
    let (jwks_file, issuer, audience, algorithms) = (path?, issuer?, audience?, algorithms?);
    if issuer.len() + "jwt::".len() >= MAX_CALLER {
        return None;
    }
    Some(JwtIssuer { jwks_file, issuer, audience, algorithms, claim })
}

fn networks(fields: &mut Mapping<'_>, report: &mut MistakeReport) -> Vec<Network> {
    let from = fields.require("from", "list the networks of the proxies, such as [127.0.0.1/32]", report);
    let Some(from) = from else { return Vec::new() };
    let items = from.items(report).unwrap_or_default();
    if items.len() > MAX_NETWORKS {
        from.report(report, format!("has {} networks: at most {MAX_NETWORKS}", items.len()));
    }
    items.iter().filter_map(|item| item.read(report, |s| Network::read(s.text))).collect()
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn networks_have_the_addresses_that_begin_alike() {
        let has =
            |network: &str, address: &str| Network::read(network).unwrap().has(address.parse().unwrap());
        assert!(has("127.0.0.1/32", "127.0.0.1") && !has("127.0.0.1/32", "127.0.0.2"));
        assert!(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("0.0.0.0/0", "1.2.3.4") && !has("0.0.0.0/0", "::1"));
        assert!(has("10.0.0.0/8", "::ffff:10.1.1.1"), "a dual-stack socket shows IPv4 so");
        assert!(has("fd00::/8", "fdff::1") && !has("fd00::/8", "fe00::1") && has("::/0", "::1"));
        for bad in ["127.0.0.1", "127.0.0.1/33", "::/129", "a/8", "10.0.0.0/08", "::ffff:10.0.0.1/128", "/8"]
        {
            assert!(Network::read(bad).is_err(), "{bad}");
        }
    }
}
