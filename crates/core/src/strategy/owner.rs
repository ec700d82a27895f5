//! Owners of keys. The memory store bounds how many bytes the keys of each owner may hold.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A strategy with its overrides, or a domain of Envoy's with its rules. To a store, owners with one name are equal,
/// also after a reload.
#[derive(Debug)]
pub struct Owner {
    name: Box<str>,
    mark: AtomicU64,
}

impl Owner {
    pub(super) fn of_strategy(name: &str) -> Self {
        Self::named(name.into())
    }

    /// The owner of the keys of an Envoy domain's rules. It cannot be a strategy's: their names have no colon.
    pub fn of_domain(name: &str) -> Self {
        Self::named(format!("domain:{name}").into())
    }

    fn named(name: Box<str>) -> Self {
        Self { name, mark: AtomicU64::new(0) }
    }

    /// Returns the unique name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last mark that a store set with [`Owner::set_mark`]; 0 if none did. Several stores may set marks, so a
    /// mark must say which store it belongs to.
    pub fn mark(&self) -> u64 {
        self.mark.load(Relaxed)
    }

    /// Sets the mark, so that the store need not look up the name again.
    pub fn set_mark(&self, mark: u64) {
        self.mark.store(mark, Relaxed);
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
