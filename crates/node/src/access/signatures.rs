//! Signatures of JWTs: the provider of jsonwebtoken over ring, for verification only.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes ring the provider of signatures of this process. Further calls change nothing.
pub(super) fn install() {
    // It fails where it was installed before, by this function.
    let _ = PROVIDER.install_default();
}

/// The public key of one check.
struct RingKey {
    algorithm: Algorithm,
    key: DecodingKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    Ok(Box::new(RingKey { algorithm: *algorithm, key: key.clone() }))
}

impl Verifier<Vec<u8>> for RingKey {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (self.algorithm, self.key.kind()) {
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for RingKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The modulus of an RSA key of 2,048 bits, and its signature of `weir` (RS256), both made by OpenSSL.
    const RSA: [&str; 2] = [
        "4tfiTRMSyC1gUv2b4McxnFvv5n7Sp95aiCk4_eAkSqyH2N0xkeWFkZIb1Md2Hu1B890CgaEDhtTiX6Qr8-D6SwPEaX\
        nF-xsI57gW-WipP80SYDBPGYOfayXCNQ2K5JkQ1lpgMEX1ydbPAjKJuq1gIdFFHJtQIPtHInHRrv1JLMB3TRuSvCev\
        6cod2oEai0EFlNXK-XejUCPPfC43192u_p-yw83U-CwY_hi9rIF2KGZ0veEcvmNWlVJARyP3oZKwch4TA6OTBzpwWD\
        vtmANPhG0meDT0wUXvaNV22VdJWNhOfzd_2JOx_gHUSacM6BVuNK64AH5mEimNj2_MSwABew",
        "lkKINc2BsuCBgJBwsTR89EMvC-6CCGUOn2Pc-wlQ5qMStc0ZvYVMlVu2epO-oG71XfPBBWSc_an11df33ej542-mIS\
        TTPvH4IHeJmta4x7DUu9mIGLTreUGii0knqWNv4itcaBvW4gVxcyA1VlB_J1u9NpFLNL1jglPwbfMCYd-pHPMjgqGB\
        6MI1bcAcYYkKp_DOic9JNUhhUUt-bBvDPnOHITtB_Lifa54VTBtbJBXsLJPvgDTOp0jqcuZxP1snlRV7tVnG8Ube45\
        6CNPwO3DZuANYWoqQuyjnon79hs3oeDbSsVq0_yegeC7JBYsOHZ4EbwVfhPOqJ33H7ioRm4w",
    ];

    #[test]
    fn ring_checks_what_others_have_signed() {
        install();
        let [modulus, signature] = RSA;
        let key = DecodingKey::from_rsa_components(modulus, "AQAB").unwrap();
        let verify =
            |message: &[u8], algorithm| jsonwebtoken::crypto::verify(signature, message, &key, algorithm);
        assert!(verify(b"weir", Algorithm::RS256).unwrap());
        assert!(!verify(b"wier", Algorithm::RS256).unwrap());
        assert!(!verify(b"weir", Algorithm::ES256).unwrap());
        assert!(!verify(b"weir", Algorithm::HS256).unwrap());
    }
}
