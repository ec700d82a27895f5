//! Keyed hashes, so that callers cannot choose names that collide or share a slot.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use siphasher::sip128::{Hasher128 as _, SipHasher13, SipHasher24};

use super::Subject;
use crate::strategy::{Field, Strategy};

/// The secret that prevents callers from aiming at a slot; the same on all nodes of a deployment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeySecret([u8; 16]);

impl KeySecret {
    /// Default secret. It is public, so it protects nothing.
    pub const BUILT_IN: Self = Self(*b"weir built-in id");

    /// A secret from a text of any length.
    pub fn from_text(text: &str) -> Self {
        let mut hasher = SipHasher24::new_with_key(&Self::BUILT_IN.0);
        hasher.write(text.as_bytes());
        Self(hasher.finish128().as_bytes())
    }

    /// A secret of this process alone, for digests that never leave it.
    pub fn random() -> Self {
        let word = || RandomState::new().hash_one(0_u8);
        Self::from_text(&format!("{:x}{:x}", word(), word()))
    }

    /// 128-bit keyed hash of `whose` keys they are and of every field that the strategy's limits count by. With the
    /// strategy it identifies the keys. The resource determines the routing group, which is irrelevant for keys
    /// without the resource.
    pub fn hash_fields(&self, whose: u64, strategy: &Strategy, subject: &Subject<'_>) -> u128 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write_u64(whose);
        let mut part = |text: &str| {
            hasher.write_u64(text.len() as u64);
            hasher.write(text.as_bytes());
        };
        for field in strategy.fields().fields() {
            part(subject.field(field));
        }
        if let Some(group) = subject.group.filter(|_| strategy.fields().has(Field::Resource)) {
            part(group);
        }
        hasher.finish128().as_u128()
    }

    /// Fingerprint of the secret: 64 bits as 16 hex digits. It does not reveal the secret.
    pub fn fingerprint(&self) -> String {
        format!("{:016x}", (self.hash(b"fingerprint of the key secret") >> 64) as u64)
    }

    /// The 128-bit keyed hash of `bytes`.
    pub fn hash(&self, bytes: &[u8]) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(bytes);
        hasher.finish128().as_u128()
    }
}

impl KeySecret {
    /// Keyed hash of `bytes` with fewer rounds, for digests that never leave the process, so that callers cannot
    /// search for collisions.
    #[inline]
    pub fn digest(&self, bytes: &[u8]) -> u128 {
        // In one step: a digest that is continued keeps a state between its parts.
        SipHasher13::new_with_key(&self.0).hash(bytes).as_u128()
    }

    /// The digest of no bytes.
    pub fn digester(&self) -> Digester {
        Digester(SipHasher13::new_with_key(&self.0))
    }
}

/// Digest of the bytes so far. A copy can be continued with others.
#[derive(Clone, Copy)]
pub struct Digester(SipHasher13);

impl Digester {
    /// Continues the digest with `bytes`.
    #[inline]
    #[must_use]
    pub fn and(mut self, bytes: &[u8]) -> Self {
        self.0.write(bytes);
        self
    }

    /// The digest.
    #[inline]
    #[must_use]
    pub fn finish(self) -> u128 {
        self.0.finish128().as_u128()
    }
}

impl std::fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeySecret(…)")
    }
}
