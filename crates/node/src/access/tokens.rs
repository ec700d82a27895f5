//! Tokens of the file, by the SHA-256 of what is presented.

use std::collections::HashMap;

use ring::digest::{SHA256, digest as ring_digest};
use weir_config::TokenEntry;

pub(super) const DIGEST: usize = 32;

/// The SHA-256 of a credential.
pub(super) type Digest = [u8; DIGEST];

/// The lines of the file. Looking up a digest tells nothing of a token by its time.
#[derive(Debug, Default)]
pub(super) struct TokenTable(HashMap<Digest, TokenEntry>);

impl TokenTable {
    pub(super) fn new(entries: Vec<TokenEntry>) -> Self {
        Self(entries.into_iter().map(|entry| (entry.digest, entry)).collect())
    }

    pub(super) fn find(&self, digest: &Digest) -> Option<&TokenEntry> {
        self.0.get(digest)
    }
}

pub(super) fn digest(bytes: &[u8]) -> Digest {
    let mut digest = [0; DIGEST];
    digest.copy_from_slice(ring_digest(&SHA256, bytes).as_ref());
    digest
}
