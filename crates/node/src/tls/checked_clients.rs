//! Certificates of clients that must pass a check besides the verification by their authorities.

use std::fmt::Debug;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use weir_store::tls::{CertificateUse, OwnAuthorities};

/// Check of a certificate besides its authorities.
pub(super) trait ClientCheck: Debug + Send + Sync {
    /// Verifies a certificate in place of its authorities; `None` if these have to.
    fn verify(&self, _end_entity: &CertificateDer<'_>, _now: UnixTime) -> Option<Result<(), Error>> {
        None
    }

    /// Refuses a certificate. Its authorities have been verified.
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error>;
}

impl ClientCheck for OwnAuthorities {
    fn verify(&self, end_entity: &CertificateDer<'_>, now: UnixTime) -> Option<Result<(), Error>> {
        OwnAuthorities::check(self, end_entity, CertificateUse::Client, now)
    }

    fn check(&self, _: &CertificateDer<'_>, _: &[CertificateDer<'_>], _: UnixTime) -> Result<(), Error> {
        Ok(())
    }
}

/// Verifies certificates, then checks them.
#[derive(Debug)]
pub(super) struct CheckedClients<C> {
    verifier: Arc<dyn ClientCertVerifier>,
    check: C,
}

impl<C: ClientCheck + 'static> CheckedClients<C> {
    pub(super) fn wrap(verifier: Arc<dyn ClientCertVerifier>, check: C) -> Arc<dyn ClientCertVerifier> {
        Arc::new(Self { verifier, check })
    }
}

impl<C: ClientCheck> ClientCertVerifier for CheckedClients<C> {
    fn offer_client_auth(&self) -> bool {
        self.verifier.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = match self.check.verify(end_entity, now) {
            Some(verified) => verified.map(|()| ClientCertVerified::assertion())?,
            None => self.verifier.verify_client_cert(end_entity, intermediates, now)?,
        };
        self.check.check(end_entity, intermediates, now)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
