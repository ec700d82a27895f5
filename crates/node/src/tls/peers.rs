//! The certificates of connected clients, each once however many connections it has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use rustls::pki_types::CertificateDer;
use tokio::sync::Notify;
use weir_grpc::PeerCertificate;
use weir_time::clock::Clock;

use super::key_kinds::parsed;

/// Longest sleep until a certificate expires: the wall clock may be set meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// The verified certificate chain of connected clients.
pub struct ClientCertificate {
    shared: Arc<PeerCertificate>,
    /// The earliest `notAfter` of the chain, in seconds since the Unix epoch.
    expires: i64,
    /// The revision of authorities and revocation lists by which it was verified last.
    verified: AtomicU64,
    is_rejected: AtomicBool,
    rejected: Notify,
    clock: Clock,
}

#[derive(Default)]
pub(super) struct ConnectedCertificates(Mutex<KnownCertificates>);

#[derive(Default)]
struct KnownCertificates {
    by_digest: HashMap<[u8; 32], Weak<ClientCertificate>, foldhash::fast::RandomState>,
    /// Number of entries at which those of closed connections are removed.
    purge_at: usize,
}

impl ClientCertificate {
    /// Wraps a chain; `None` if it is empty.
    fn new(chain: &[CertificateDer<'_>], clock: &Clock) -> Option<Self> {
        let now = seconds(clock);
        let expires = chain.iter().enumerate().filter_map(|(index, der)| {
            // A certificate that cannot be parsed was not verified either.
            let not_after = parsed(der).map_or(0, |certificate| certificate.validity().not_after.timestamp());
            // Clients may send certificates that no chain needs.
            (index == 0 || not_after > now).then_some(not_after)
        });
        let shared = PeerCertificate::new(chain.iter().map(|der| der.as_ref()))?;
        Some(Self {
            expires: expires.min().unwrap_or_default(),
            shared: Arc::new(shared),
            verified: AtomicU64::new(0),
            is_rejected: AtomicBool::new(false),
            rejected: Notify::new(),
            clock: clock.clone(),
        })
    }

    /// Returns it as interceptors see it.
    pub fn shared(&self) -> &Arc<PeerCertificate> {
        &self.shared
    }

    /// Returns the chain as the client has sent it, its own certificate first.
    pub(super) fn chain(&self) -> Vec<CertificateDer<'_>> {
        self.shared.chain().iter().map(|der| CertificateDer::from(&**der)).collect()
    }

    /// True if the client's certificate, or one that it was verified by, is out of date.
    pub(super) fn has_expired(&self) -> bool {
        self.expires <= seconds(&self.clock)
    }

    pub(super) fn verified(&self) -> u64 {
        self.verified.load(Ordering::Acquire)
    }

    pub(super) fn set_verified(&self, revision: u64) {
        self.verified.store(revision, Ordering::Release);
    }

    /// Ends all connections of the certificate.
    pub(super) fn reject(&self) {
        self.is_rejected.store(true, Ordering::Release);
        self.rejected.notify_waiters();
    }

    /// Waits until the certificate is no longer valid: it has expired, or was rejected after a change of the files.
    pub async fn invalid(&self) -> &'static str {
        tokio::select! {
            () = self.rejected() => "the authorities or revocation lists have changed",
            () = self.expired() => "the client's certificate has expired",
        }
    }

    async fn rejected(&self) {
        // A waiter is notified from its creation on, so it is created first.
        let notified = self.rejected.notified();
        if !self.is_rejected.load(Ordering::Acquire) {
            notified.await;
        }
    }

    async fn expired(&self) {
        while !self.has_expired() {
            let left =
                Duration::from_secs(self.expires.saturating_sub(seconds(&self.clock)).max(0).unsigned_abs());
            tokio::time::sleep(left.clamp(Duration::from_millis(100), LONGEST_SLEEP)).await;
        }
    }
}

impl ConnectedCertificates {
    /// Returns the certificate of this chain, which connections with the same one share.
    pub(super) fn share(
        &self,
        chain: &[CertificateDer<'_>],
        clock: &Clock,
    ) -> Option<Arc<ClientCertificate>> {
        let digest = digest(chain);
        let mut known = self.0.lock();
        let shared = known.by_digest.get(&digest).and_then(Weak::upgrade);
        if let Some(shared) = shared.filter(|shared| !shared.is_rejected.load(Ordering::Acquire)) {
            return Some(shared);
        }
        if known.by_digest.len() >= known.purge_at {
            known.by_digest.retain(|_, certificate| certificate.strong_count() > 0);
            known.purge_at = (known.by_digest.len() * 2).max(64);
        }
        let certificate = Arc::new(ClientCertificate::new(chain, clock)?);
        known.by_digest.insert(digest, Arc::downgrade(&certificate));
        Some(certificate)
    }

    /// Returns those of open connections.
    pub(super) fn all(&self) -> Vec<Arc<ClientCertificate>> {
        self.0.lock().by_digest.values().filter_map(Weak::upgrade).collect()
    }
}

pub(super) fn seconds(clock: &Clock) -> i64 {
    i64::try_from(clock.now().0 / 1_000_000).unwrap_or(i64::MAX)
}

fn digest(chain: &[CertificateDer<'_>]) -> [u8; 32] {
    let mut digest = Context::new(&SHA256);
    for der in chain {
        digest.update(&(der.len() as u64).to_le_bytes());
        digest.update(der);
    }
    digest.finish().as_ref().try_into().unwrap_or_default()
}
