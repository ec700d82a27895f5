//! Keys of an issuer of JWTs, and tokens that it signs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

/// A key pair.
#[derive(Debug)]
pub struct JwtKeyPair {
    kid: String,
    key: SigningKey,
}

#[derive(Debug)]
enum SigningKey {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl JwtKeyPair {
    /// Makes a key for EdDSA.
    #[must_use]
    pub fn ed25519(kid: &str) -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        Self { kid: kid.to_owned(), key: SigningKey::Ed25519(key) }
    }

    /// Makes a key for ES256.
    #[must_use]
    pub fn p256(kid: &str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        Self { kid: kid.to_owned(), key: SigningKey::P256(key) }
    }

    /// Takes a key for RS256: PKCS#1 in PEM.
    #[must_use]
    pub fn rsa(kid: &str, pem: &str) -> Self {
        let encoded: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let der = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
        Self { kid: kid.to_owned(), key: SigningKey::Rsa(RsaKeyPair::from_der(&der).unwrap()) }
    }

    /// The public key, as a file of keys has it.
    #[must_use]
    pub fn jwk(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.key {
            SigningKey::Ed25519(key) => {
                let x = encode(key.public_key().as_ref());
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.kid, "use": "sig", "alg": "EdDSA", "x": x })
            }
            SigningKey::P256(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                let (x, y) = (encode(x), encode(y));
                json!({ "kty": "EC", "crv": "P-256", "kid": self.kid, "use": "sig", "alg": "ES256", "x": x, "y": y })
            }
            SigningKey::Rsa(key) => {
                let RsaPublicKeyComponents::<Vec<u8>> { n, e } = key.public().into();
                let (n, e) = (encode(&n), encode(&e));
                json!({ "kty": "RSA", "kid": self.kid, "use": "sig", "alg": "RS256", "n": n, "e": e })
            }
        }
    }

    /// The header of its tokens.
    #[must_use]
    pub fn header(&self) -> Value {
        let alg = match self.key {
            SigningKey::Ed25519(_) => "EdDSA",
            SigningKey::P256(_) => "ES256",
            SigningKey::Rsa(_) => "RS256",
        };
        json!({ "alg": alg, "typ": "JWT", "kid": self.kid })
    }

    /// Signs a token.
    #[must_use]
    pub fn sign(&self, header: Value, claims: Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// Signs texts that need not be JSON.
    #[must_use]
    pub fn sign_text(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = match &self.key {
            SigningKey::Ed25519(key) => key.sign(message.as_bytes()).as_ref().to_vec(),
            SigningKey::P256(key) => {
                key.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec()
            }
            SigningKey::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let random = SystemRandom::new();
                key.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
