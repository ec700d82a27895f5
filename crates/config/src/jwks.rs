//! The keys that JWTs are signed with: a file in the form of RFC 7517. Its signatures are checked elsewhere.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Map, Value};

use super::tokens::read_bounded;
use super::values::quote;

/// Maximum size of the file, in bytes.
const MAX_JWKS: usize = 1 << 20;

/// The smallest and the largest RSA key, in bits. What is larger is never verified.
const MIN_RSA_BITS: usize = 2048;
const MAX_RSA_BITS: usize = 8192;

/// Digits of base64url of a coordinate: 32 bytes.
const COORDINATE: usize = 43;

/// An algorithm of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwtAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

/// A public key of the file, for one of the supported algorithms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jwk {
    /// The id of the key, if it has one.
    pub kid: Option<String>,
    /// The algorithm of its signatures.
    pub algorithm: JwtAlgorithm,
    /// The numbers of the key in base64url: n and e of RSA, x and y of P-256, x of Ed25519.
    pub numbers: Vec<String>,
}

impl JwtAlgorithm {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("RS256", Self::Rs256), ("ES256", Self::Es256), ("EdDSA", Self::EdDsa)];

    /// Returns its name in headers of JWTs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// Reads a file of keys, or all mistakes in it. Keys for other algorithms are skipped.
pub fn read_jwks(path: &Path) -> Result<Vec<Jwk>, Vec<String>> {
    let at = |reason: String| format!("{}: {reason}", path.display());
    let bytes = read_bounded(path, MAX_JWKS).map_err(|error| vec![error])?;
    parse(&bytes).map_err(|mistakes| mistakes.into_iter().map(at).collect())
}

fn parse(bytes: &[u8]) -> Result<Vec<Jwk>, Vec<String>> {
    let json: Value = serde_json::from_slice(bytes).map_err(|error| vec![format!("is not JSON: {error}")])?;
    let Some(keys) = json.get("keys").and_then(Value::as_array) else {
        return Err(vec!["has no list `keys` (RFC 7517)".to_owned()]);
    };
    let (mut found, mut mistakes, mut kids) = (Vec::new(), Vec::new(), HashSet::new());
    for (index, key) in keys.iter().enumerate() {
        let read = key.as_object().ok_or("is not an object".to_owned()).and_then(jwk);
        match read {
            Ok(Some(key)) => {
                if key.kid.as_ref().is_some_and(|kid| !kids.insert(kid.clone())) {
                    mistakes.push(format!("keys[{index}]: its `kid` is given twice"));
                }
                found.push(key);
            }
            Ok(None) => {}
            Err(reason) => mistakes.push(format!("keys[{index}]: {reason}")),
        }
    }
    if mistakes.is_empty() && found.is_empty() {
        mistakes.push("has no key for RS256, ES256 or EdDSA".to_owned());
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

fn jwk(key: &Map<String, Value>) -> Result<Option<Jwk>, String> {
    let text = |name: &str| match key.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(format!("`{name}` is not a text")),
    };
    let needed = |name: &str| {
        let value = text(name)?.filter(|value| is_base64url(value));
        value.map(str::to_owned).ok_or(format!("`{name}` is missing, or not base64url"))
    };
    if key.contains_key("d") || key.contains_key("k") {
        return Err("is a secret key; the file must have only public ones".to_owned());
    }
    if let Some(other) = text("use")?.filter(|used| *used != "sig") {
        return Err(format!("`use` is {}, not \"sig\"", quote(other)));
    }
    let (kty, crv) = (text("kty")?.unwrap_or_default(), text("crv")?.unwrap_or_default());
    let (fits, algorithm): (&[&str], _) = match (kty, crv) {
        ("RSA", _) => (&["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"], JwtAlgorithm::Rs256),
        ("EC", "P-256") => (&["ES256"], JwtAlgorithm::Es256),
        ("OKP", "Ed25519") => (&["EdDSA", "Ed25519"], JwtAlgorithm::EdDsa),
        ("EC" | "OKP", _) => return Ok(None),
        _ => return Err(format!("`kty` is {}, not RSA, EC or OKP", quote(kty))),
    };
    if let Some(alg) = text("alg")? {
        if !fits.contains(&alg) {
            return Err(format!("`alg` is {}, which does not fit a key of {kty}", quote(alg)));
        }
        if kty == "RSA" && alg != "RS256" {
            return Ok(None);
        }
    }
    let numbers = match algorithm {
        JwtAlgorithm::Rs256 => vec![needed("n")?, needed("e")?],
        JwtAlgorithm::Es256 => vec![needed("x")?, needed("y")?],
        JwtAlgorithm::EdDsa => vec![needed("x")?],
    };
    match &numbers[..] {
        [n, e] if algorithm == JwtAlgorithm::Rs256 => check_rsa(n, e)?,
        coordinates => {
            if let Some(wrong) = coordinates.iter().find(|one| one.len() != COORDINATE) {
                let bytes = wrong.len() * 6 / 8;
                return Err(format!(
                    "a coordinate has {bytes} bytes; it must have 32 with its leading zeros"
                ));
            }
        }
    }
    Ok(Some(Jwk { kid: text("kid")?.map(str::to_owned), algorithm, numbers }))
}

fn is_base64url(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !text.is_empty() && text.len() % 4 != 1 && text.bytes().all(is_digit)
}

/// The bytes of base64url. What the last digit has beyond whole bytes is left out.
fn bytes_of(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        _ => 63,
    };
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(text.len() * 6 / 8), 0_u16, 0);
    for digit in text.bytes() {
        (bits, count) = (bits << 6 | u16::from(value(digit)), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count).to_be_bytes()[1]);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

/// Bits of a number, without leading zeros.
fn bits_of(bytes: &[u8]) -> usize {
    match bytes.iter().position(|byte| *byte != 0) {
        Some(zeros) => {
            let first = bytes.get(zeros).map_or(0, |byte| byte.leading_zeros() as usize);
            (bytes.len() - zeros) * 8 - first
        }
        None => 0,
    }
}

/// Checks numbers of RSA: with an exponent of 1 everybody can sign.
fn check_rsa(modulus: &str, exponent: &str) -> Result<(), String> {
    let (modulus, exponent) = (bytes_of(modulus), bytes_of(exponent));
    let is_odd = |bytes: &[u8]| bytes.last().is_some_and(|byte| byte & 1 == 1);
    match (bits_of(&modulus), bits_of(&exponent)) {
        (bits, _) if bits < MIN_RSA_BITS => {
            Err(format!("has {bits} bits; RSA needs at least {MIN_RSA_BITS}"))
        }
        (bits, _) if bits > MAX_RSA_BITS => Err(format!("has {bits} bits; RSA may have {MAX_RSA_BITS}")),
        _ if !is_odd(&modulus) => Err("`n` is even; it is no product of two primes".to_owned()),
        (_, bits @ (0..=1 | 34..)) => {
            Err(format!("`e` has {bits} bits; it must be odd and have 2 to 33 bits, such as AQAB"))
        }
        _ if !is_odd(&exponent) => Err("`e` is even; it must be odd, such as AQAB".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An odd number of so many bits: base64url of 0x80 0x00 ... 0x01.
    fn rsa(bits: usize) -> String {
        let last = match bits / 8 % 3 {
            0 => "B",
            1 => "Q",
            _ => "E",
        };
        format!("g{}{last}", "A".repeat((bits / 8 * 4).div_ceil(3) - 2))
    }

    #[test]
    fn sizes_are_counted_without_leading_zeros() {
        let bits = |text: &str| bits_of(&bytes_of(text));
        assert_eq!([rsa(2048), rsa(2040), rsa(1024)].map(|key| bits(&key)), [2048, 2040, 1024]);
        assert_eq!((bits("AQAB"), bits("AAAA"), bits("Aw")), (17, 0, 2));
        assert_eq!((bytes_of("AQAB"), bytes_of("Aw")), (vec![1, 0, 1], vec![3]));
    }

    #[test]
    fn keys_that_cannot_be_meant_are_refused() {
        let parse_keys = |keys: String| parse(format!("{{\"keys\":[{keys}]}}").as_bytes());
        let good = format!(
            "{{\"kty\":\"RSA\",\"kid\":\"a\",\"use\":\"sig\",\"alg\":\"RS256\",\"n\":\"{}\",\"e\":\"AQAB\"}}",
            rsa(2048)
        );
        assert_eq!(parse_keys(good.clone()).unwrap()[0].algorithm, JwtAlgorithm::Rs256);
        let x = "A".repeat(43);
        let okp = format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"{x}\"}}");
        assert_eq!(parse_keys(format!("{okp},{{\"kty\":\"EC\",\"crv\":\"P-384\"}}")).unwrap().len(), 1);
        for (keys, word) in [
            (format!("{good},{good}"), "twice"),
            (good.replace("sig", "enc"), "use"),
            (good.replace("\"RS256\"", "\"ES256\""), "does not fit"),
            (good.replace(&rsa(2048), &rsa(2040)), "2040 bits"),
            (good.replace("\"e\"", "\"d\""), "secret"),
            ("{\"kty\":\"oct\",\"k\":\"AAAA\"}".to_owned(), "secret"),
            ("{\"kty\":\"oct\"}".to_owned(), "kty"),
            ("1".to_owned(), "object"),
            ("{\"kty\":\"EC\",\"crv\":\"P-384\"}".to_owned(), "no key"),
            (okp.replace(&x, "A+AA"), "base64url"),
            (okp.replace(&format!("\"{x}\""), "7"), "not a text"),
            (okp.replace(&x, "AAAA"), "a coordinate has 3 bytes"),
            (good.replace("AQAB", "AQ"), "`e` has 1 bits"),
            (good.replace("AQAB", "BA"), "`e` is even"),
            (good.replace("AQAB", "AQAAAAAB"), "`e` has 41 bits"),
            (good.replace(&rsa(2048), &rsa(8200)), "8200 bits"),
            (good.replace(&rsa(2048), &format!("{}A", &rsa(2048)[..341])), "`n` is even"),
        ] {
            let mistakes = parse_keys(keys.clone()).unwrap_err();
            assert!(mistakes.iter().any(|mistake| mistake.contains(word)), "{keys}: {mistakes:?}");
        }
    }
}
