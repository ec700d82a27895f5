//! Addresses of Redis. They are validated here, so that a mistake is reported at startup and not at the first
//! call.

use std::path::PathBuf;

use super::secret::password;
use super::unix_path::unix_path;
use super::values::{Digits, MAX_SECRET, Scalar, digits, quote};
use super::{Login, Secret, values};

/// Maximum length of a DNS host name, in bytes.
const MAX_HOST: usize = 253;

/// The largest number of a database. Redis has 16, unless its `databases` says otherwise.
pub(super) const MAX_DATABASE: u32 = 65_535;

/// A parsed address.
#[derive(Clone)]
pub(super) struct RedisUrl {
    /// `redis://HOST:PORT` or `rediss://HOST:PORT`, without credentials, and with the default port filled in; or
    /// `unix:PATH`.
    pub(super) bare: String,
    /// True if the scheme is `rediss`.
    pub(super) tls: bool,
    /// The credentials in the URL.
    pub(super) login: Option<Login>,
    /// The database in the URL.
    pub(super) database: Option<u32>,
}

/// Parses `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://…`, or `unix:/PATH`.
///
/// Errors never show the credentials, because errors are logged.
pub(super) fn redis_url(scalar: Scalar<'_>) -> Result<RedisUrl, String> {
    if let Some(path) = unix_path(scalar.text) {
        return socket(path.map_err(|error| error.to_string())?);
    }
    let shown = without_login(scalar.text);
    let (scheme, rest) = scalar.text.split_once("://").unwrap_or_default();
    if !matches!(scheme, "redis" | "rediss") {
        return Err(format!(
            "{shown} is not an address of Redis; write redis://HOST:PORT, or rediss:// for TLS"
        ));
    }
    let (user_info, rest) = match rest.rsplit_once('@') {
        Some((user_info, rest)) => (Some(user_info), rest),
        None => (None, rest),
    };
    let login = user_info.map(login).transpose().map_err(|reason| format!("{shown}: {reason}"))?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if rest.contains(['?', '#']) || path.contains('/') {
        return Err(format!(
            "{shown}: parameters are not supported; write {scheme}://HOST:PORT, with /NUMBER for a database"
        ));
    }
    let database = database(path).map_err(|reason| format!("{shown}: {reason}"))?;
    let (host, port) = split_port(authority);
    if !is_host(host) {
        return Err(format!("{shown}: {} is not a host name or an IP address", quote(host)));
    }
    match port.map_or(Digits::Number(6379), digits) {
        Digits::Number(port @ 1..=65535) => {
            let (bare, tls) = (format!("{scheme}://{host}:{port}"), scheme == "rediss");
            Ok(RedisUrl { bare, tls, login, database })
        }
        _ => Err(format!("{shown}: {} is not a port from 1 to 65535", quote(port.unwrap_or_default()))),
    }
}

fn socket(path: PathBuf) -> Result<RedisUrl, String> {
    let path = path.to_string_lossy();
    if !path.starts_with('/') {
        return Err(format!("{} is not an absolute path; write unix:/PATH", quote(&path)));
    }
    Ok(RedisUrl { bare: format!("unix:{path}"), tls: false, login: None, database: None })
}

fn database(path: &str) -> Result<Option<u32>, String> {
    if path.is_empty() {
        return Ok(None);
    }
    let number = values::integer(Scalar { text: path, quoted: false });
    let number = number.and_then(|number| values::within(number, 0, u64::from(MAX_DATABASE)));
    let number = number.map_err(|reason| format!("the database: {reason}"))?;
    Ok(u32::try_from(number).ok())
}

/// Quotes the address, with everything before its last `@` removed.
fn without_login(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, rest)) => quote(&format!("…@{rest}")),
        None => quote(url),
    }
}

/// Parses `USER:PASSWORD` or `:PASSWORD`. Reserved characters are percent-encoded.
fn login(user_info: &str) -> Result<Login, String> {
    if user_info.contains(['/', '?', '#', '@']) {
        return Err("in a user or password write / as %2F, ? as %3F, # as %23 and @ as %40".to_owned());
    }
    let Some((user, pass)) = user_info.split_once(':') else {
        return Err("there is a user but no password; write redis://USER:PASSWORD@HOST".to_owned());
    };
    let decoded = |text| percent_decoded(text).ok_or("a % in a user or password must be written as %25");
    let pass = decoded(pass)?;
    let password: Secret =
        password(Scalar { text: &pass, quoted: true }).map_err(|reason| format!("the password {reason}"))?;
    let username = match user {
        "" => None,
        user => Some(username(Scalar { text: &decoded(user)?, quoted: true })?),
    };
    Ok(Login { username, password })
}

/// Reads the name of a Redis user. Errors do not show it, because a password is easily put in its place.
pub(super) fn username(scalar: Scalar<'_>) -> Result<String, String> {
    if scalar.text.len() > MAX_SECRET {
        return Err(format!("the user is {} bytes long: at most {MAX_SECRET}", scalar.text.len()));
    }
    values::text(scalar)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = after;
            continue;
        }
        let (hex, after) = after.split_at_checked(2)?;
        let hex = std::str::from_utf8(hex).ok().filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// Splits host and port; an IPv6 address is in brackets.
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
