//! Names of callers, and the patterns of rules that match them.

use super::values::quote;

/// The longest name of a caller, in bytes.
pub const MAX_CALLER: usize = 2304;

/// The longest SPIFFE ID, in bytes.
const MAX_SPIFFE_ID: usize = 2048;

/// The longest name of a token.
const MAX_TOKEN_NAME: usize = 64;

/// Callers of a rule: one name, or all with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CallerPattern {
    /// One name.
    Exact(Box<str>),
    /// All names with this prefix.
    Prefix(Box<str>),
}

impl CallerPattern {
    /// True if it matches a name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => **exact == *name,
            Self::Prefix(prefix) => name.starts_with(&**prefix),
        }
    }
}

/// True for a valid SPIFFE ID: a lower-case trust domain, and no empty, `.` or `..` segment.
#[must_use]
pub fn is_spiffe_id(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("spiffe://") else { return false };
    let (domain, path) = match rest.find('/') {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let is_segment = |segment: &str| {
        !matches!(segment, "" | "." | "..")
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    text.len() <= MAX_SPIFFE_ID
        && is_trust_domain(domain)
        && path.is_none_or(|path| path.split('/').all(is_segment))
}

/// True for the name of a SPIFFE trust domain.
pub(super) fn is_trust_domain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
    (1..=255).contains(&text.len()) && text.bytes().all(is_plain)
}

/// True for a name of `tokens_file`.
#[must_use]
pub fn is_token_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    (1..=MAX_TOKEN_NAME).contains(&text.len()) && text.bytes().all(is_plain)
}

/// True for a name of a certificate's DNS SAN, in lower case.
#[must_use]
pub fn is_dns_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && !b":/".contains(&byte);
    (1..=255).contains(&text.len()) && text.bytes().all(is_plain)
}

/// True for the claim of a JWT that can be the end of a name.
#[must_use]
pub fn is_claim(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_CALLER && !text.chars().any(char::is_control)
}

/// Parses an entry of `callers`. `issuers` are those of `server.identity.jwt`.
pub(super) fn caller_pattern(text: &str, issuers: &[String]) -> Result<CallerPattern, String> {
    let shown = quote(text);
    if text.len() > MAX_CALLER || text.chars().any(char::is_control) {
        return Err(format!(
            "{shown} is no name of a caller: at most {MAX_CALLER} bytes, no control characters"
        ));
    }
    if let Some(prefix) = text.strip_suffix('*')
        && !text.starts_with("dns:")
    {
        return if is_prefix(prefix, issuers) {
            Ok(CallerPattern::Prefix(prefix.into()))
        } else {
            Err(format!(
                "{shown}: a final * can stand only after a / behind a whole trust domain (spiffe://prod/*), after the \
                 issuer of a JWT and a colon, or after token: and at least one character"
            ))
        };
    }
    let known = text == "anonymous"
        || is_spiffe_id(text)
        || text.strip_prefix("dns:").is_some_and(is_dns_name)
        || text.strip_prefix("token:").is_some_and(is_token_name)
        || text.strip_prefix("uid:").is_some_and(is_uid)
        || issuers.iter().any(|issuer| claim_of(text, issuer).is_some_and(is_claim));
    if known {
        return Ok(CallerPattern::Exact(text.into()));
    }
    Err(match text.strip_prefix("jwt:") {
        Some(_) => format!("{shown}: no issuer of `server.identity.jwt` has such names"),
        None => format!(
            "{shown} is no name of a caller: spiffe://DOMAIN/PATH, dns:NAME, token:NAME, jwt:ISSUER:CLAIM, uid:NUMBER \
             or anonymous"
        ),
    })
}

fn is_prefix(prefix: &str, issuers: &[String]) -> bool {
    if let Some(id) = prefix.strip_suffix('/') {
        return is_spiffe_id(id);
    }
    let of_token = prefix.strip_prefix("token:").is_some_and(is_token_name);
    of_token || issuers.iter().any(|issuer| claim_of(prefix, issuer).is_some())
}

/// Returns the claim of a name `jwt:ISSUER:CLAIM`.
fn claim_of<'a>(name: &'a str, issuer: &str) -> Option<&'a str> {
    name.strip_prefix("jwt:")?.strip_prefix(issuer)?.strip_prefix(':')
}

fn is_uid(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|uid| uid.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_spiffe_ids_are_names() {
        for good in ["spiffe://prod", "spiffe://prod/shop", "spiffe://a.b-c_1/ns/x/sa/Y.z"] {
            assert!(is_spiffe_id(good), "{good}");
        }
        let long = format!("spiffe://prod/{}", "x".repeat(2048 - 14));
        assert!(is_spiffe_id(&long) && !is_spiffe_id(&format!("{long}x")));
        for bad in [
            "spiffe://",
            "spiffe:///x",
            "spiffe://Prod/x",
            "spiffe://prod/",
            "spiffe://prod//x",
            "spiffe://prod/./x",
            "spiffe://prod/../x",
            "spiffe://prod/x y",
            "spiffe://prod/%2e",
            "spiffe://prod:1/x",
            "spiffe://u@prod/x",
            "spiffe://prod/x?q",
            "spiffe://prod/x#f",
            "SPIFFE://prod/x",
            "dns:prod",
            "token:x",
        ] {
            assert!(!is_spiffe_id(bad), "{bad}");
        }
    }

    #[test]
    fn a_star_stands_only_where_no_other_name_can_begin_alike() {
        let issuers = ["https://idp.example".to_owned()];
        let read = |text: &str| caller_pattern(text, &issuers);
        for good in ["spiffe://prod/*", "spiffe://prod/ns/shop/*", "token:shop*", "jwt:https://idp.example:*"]
        {
            let prefix = good.strip_suffix('*').unwrap();
            assert_eq!(read(good), Ok(CallerPattern::Prefix(prefix.into())));
        }
        for bad in [
            "*",
            "spiffe://*",
            "spiffe://prod*",
            "spiffe://prod/shop*",
            "spiffe://prod//*",
            "token:*",
            "uid:*",
            "jwt:*",
            "jwt:https://idp.example*",
            "jwt:https://other.example:*",
            "anonymous*",
            "spiffe://pr*d/x",
            "uid:01",
            "uid:4294967296",
            "token:Shop",
            "bob",
            "",
            "dns:Shop.example",
            "dns:a:b",
            "jwt:x:y",
            "anonymous ",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        for good in [
            "anonymous",
            "dns:*.shop",
            "dns:shop.example",
            "uid:0",
            "token:shop",
            "jwt:https://idp.example:a*b",
        ] {
            assert_eq!(read(good), Ok(CallerPattern::Exact(good.into())));
        }
    }
}
