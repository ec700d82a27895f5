//! The number of the current certificates, authorities, revocation lists, tokens, key sets and rules together.

use std::sync::Arc;

use tokio::sync::watch;

/// The current generation of all files that say who may call. Clones share it. What was cached under an older number
/// must not be used.
#[derive(Debug, Clone)]
pub struct Generation(Arc<watch::Sender<u64>>);

impl Generation {
    /// Returns its number.
    #[must_use]
    pub fn current(&self) -> u64 {
        *self.0.borrow()
    }

    /// Begins the next one, after a file was read that has changed.
    pub fn advance(&self) {
        self.0.send_modify(|number| *number += 1);
    }

    /// Returns a receiver that is woken by each change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

impl Default for Generation {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(1)))
    }
}
