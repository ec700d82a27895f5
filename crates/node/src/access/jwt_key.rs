//! A public key of an issuer of JWTs.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::rand::SystemRandom;
use weir_config::{Jwk, JwtAlgorithm};

pub(super) struct JwtKey {
    issuer: String,
    jwk: Jwk,
    key: DecodingKey,
}

impl JwtKey {
    pub(super) fn new(issuer: &str, jwk: Jwk) -> Result<Self, String> {
        check_point(&jwk)?;
        let key = match (jwk.algorithm, &jwk.numbers[..]) {
            (JwtAlgorithm::Rs256, [n, e]) => DecodingKey::from_rsa_components(n, e),
            (JwtAlgorithm::Es256, [x, y]) => DecodingKey::from_ec_components(x, y),
            (JwtAlgorithm::EdDsa, [x]) => DecodingKey::from_ed_components(x),
            _ => return Err("a key lacks numbers".to_owned()),
        };
        let key = key.map_err(|error| error.to_string())?;
        Ok(Self { issuer: issuer.to_owned(), jwk, key })
    }

    pub(super) fn algorithm(&self) -> JwtAlgorithm {
        self.jwk.algorithm
    }

    pub(super) fn kid(&self) -> Option<&str> {
        self.jwk.kid.as_deref()
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.jwk == other.jwk
    }

    /// Checks a signature of header and claims.
    pub(super) fn verifies(&self, signature: &str, signed: &str) -> bool {
        let algorithm = match self.jwk.algorithm {
            JwtAlgorithm::Rs256 => Algorithm::RS256,
            JwtAlgorithm::Es256 => Algorithm::ES256,
            JwtAlgorithm::EdDsa => Algorithm::EdDSA,
        };
        jsonwebtoken::crypto::verify(signature, signed.as_bytes(), &self.key, algorithm).unwrap_or(false)
    }
}

/// Checks that the numbers of a key are a point with which nobody else can sign.
fn check_point(jwk: &Jwk) -> Result<(), String> {
    let bytes: Result<Vec<Vec<u8>>, _> =
        jwk.numbers.iter().map(|number| URL_SAFE_NO_PAD.decode(number)).collect();
    let named = || {
        jwk.kid.as_deref().map_or_else(|| "a key without `kid`".to_owned(), |kid| format!("the key {kid:?}"))
    };
    let bytes = bytes.map_err(|error| format!("{} is no base64url: {error}", named()))?;
    match (jwk.algorithm, &bytes[..]) {
        (JwtAlgorithm::Es256, [x, y]) if !is_on_p256(x, y) => {
            Err(format!("{} is no point of P-256", named()))
        }
        (JwtAlgorithm::EdDsa, [x]) if is_of_small_order(x) => {
            Err(format!("{} is a point of small order, with which everybody can sign", named()))
        }
        _ => Ok(()),
    }
}

/// True if the coordinates are a point of the curve. All of them but infinity have its order.
fn is_on_p256(x: &[u8], y: &[u8]) -> bool {
    // ring checks the point of the other side of an agreement.
    let Ok(own) = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()) else { return false };
    let point = [&[4], x, y].concat();
    agree_ephemeral(own, &UnparsedPublicKey::new(&ECDH_P256, point), |_| ()).is_ok()
}

/// True for the encodings of the eight points whose order divides 8, also those that are not canonical: y is 0, 1 or -1,
/// or one of two more (RFC 8032; the list of libsodium).
fn is_of_small_order(encoded: &[u8]) -> bool {
    const P: [u8; 32] = {
        let mut p = [0xff; 32];
        (p[0], p[31]) = (0xed, 0x7f);
        p
    };
    const ORDER_8: [[u8; 32]; 2] = [
        [
            0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
            0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
        ],
        [
            0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
            0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
        ],
    ];
    let Ok(mut y) = <[u8; 32]>::try_from(encoded) else { return true };
    // The sign of x does not change the order.
    y[31] &= 0x7f;
    let small = |low: u8| {
        let mut number = [0; 32];
        number[0] = low;
        number
    };
    let of_p = |low: u8| [&[low], &P[1..]].concat();
    ORDER_8.contains(&y)
        || [0, 1].map(small).contains(&y)
        // -1, and 0 and 1 once more.
        || [0xec, 0xed, 0xee].into_iter().any(|low| of_p(low) == y)
}

impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtKey")
            .field("issuer", &self.issuer)
            .field("kid", &self.jwk.kid)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn checked(algorithm: JwtAlgorithm, numbers: &[&[u8]]) -> Result<(), String> {
        let numbers = numbers.iter().map(|number| encoded(number)).collect();
        check_point(&Jwk { kid: Some("k".to_owned()), algorithm, numbers })
    }

    #[test]
    fn points_off_the_curve_are_refused() {
        let key = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
        let public = key.compute_public_key().unwrap();
        let (x, y) = public.as_ref()[1..].split_at(32);
        assert_eq!(checked(JwtAlgorithm::Es256, &[x, y]), Ok(()));
        let mut other = y.to_vec();
        other[31] ^= 1;
        for y in [&other[..], &[0; 32], &y[1..]] {
            assert!(checked(JwtAlgorithm::Es256, &[x, y]).unwrap_err().contains("no point of P-256"));
        }
        assert!(checked(JwtAlgorithm::Es256, &[&[0; 32], &[0; 32]]).is_err(), "infinity");
    }

    #[test]
    fn points_of_small_order_are_refused() {
        // The base point of RFC 8032.
        let mut base = [0x66; 32];
        base[0] = 0x58;
        assert_eq!(checked(JwtAlgorithm::EdDsa, &[&base]), Ok(()));
        let mut minus_one = [0xff; 32];
        (minus_one[0], minus_one[31]) = (0xec, 0x7f);
        let mut one = [0; 32];
        one[0] = 1;
        let mut signed = one;
        signed[31] = 0x80;
        for small in [[0; 32], one, signed, minus_one] {
            assert!(
                checked(JwtAlgorithm::EdDsa, &[&small]).unwrap_err().contains("small order"),
                "{small:?}"
            );
        }
    }
}
