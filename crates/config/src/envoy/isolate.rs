//! Keeps the mistakes of one domain away from all others.
//!
//! A domain with a mistake goes on with its last good version. A file that cannot be read has the domains that it had:
//! nobody knows what it says of them now. A domain that never had a good version is refused by name, and so is, as
//! long as a file that was never read may have it, every domain that no file has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use weir_core::envoy::{Descriptor, Domains};

use super::files::FileSet;

/// A domain whose newest version has a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedDomain {
    /// Its name.
    pub name: String,
    /// True if its last good version goes on; otherwise it has none.
    pub goes_on: bool,
}

/// The last good versions of all domains.
#[derive(Debug, Default)]
pub(super) struct GoodDomains {
    versions: BTreeMap<String, Vec<Descriptor>>,
    /// The domain of each file that was ever read.
    homes: HashMap<PathBuf, String>,
}

impl GoodDomains {
    /// Takes over what is good of a set of files. Returns the domains to serve, and those that are refused.
    pub(super) fn take(&mut self, set: FileSet) -> (Domains, Vec<RefusedDomain>) {
        let FileSet { read, mut homes, bad: mut refused, unread, .. } = set;
        let mut is_blind = false;
        for path in unread {
            // It may be a directory.
            let had: Vec<_> = self.homes.iter().filter(|(file, _)| file.starts_with(&path)).collect();
            is_blind |= had.is_empty();
            for (file, domain) in had {
                refused.insert(domain.clone());
                homes.insert(file.clone(), domain.clone());
            }
        }
        self.homes = homes;
        let good = read.domains.into_iter().filter(|(name, _)| !refused.contains(name));
        let mut versions: BTreeMap<String, Vec<Descriptor>> = good.collect();
        for name in &refused {
            versions.extend(self.versions.remove_entry(name));
        }
        self.versions = versions;
        let missing: BTreeSet<&String> =
            refused.iter().filter(|name| !self.versions.contains_key(*name)).collect();
        let domains = Domains::new(self.versions.clone());
        let domains = domains.missing(missing.into_iter().map(String::as_str), is_blind);
        let refused = refused
            .iter()
            .map(|name| RefusedDomain { name: name.clone(), goes_on: self.versions.contains_key(name) });
        (domains, refused.collect())
    }
}
