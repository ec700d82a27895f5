//! Keeps the mistakes of one domain away from all others.
//!
//! A domain with a mistake goes on with its last good version. A file that cannot be read has the domains that it had:
//! nobody knows what it says of them now. A domain that never had a good version is refused by name, and so is, as
//! long as a file that was never read may have it, every domain that no file has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use crate::rules::{Descriptor, Domains};

use super::envoy_files::FileSet;

/// A domain whose newest version has a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedDomain {
    /// Name of the domain.
    pub name: String,
    /// True if its last good version goes on; otherwise it has none.
    pub goes_on: bool,
}

impl RefusedDomain {
    /// Logs the refusal.
    pub(crate) fn log(&self) {
        let domain = &self.name;
        match self.goes_on {
            true => tracing::error!(domain, "domain rejected; keeping its last good version"),
            false => {
                tracing::error!(domain, "domain rejected; it has no good version, so its requests fail");
            }
        }
    }
}

/// Domains as they were read, with what is not good.
#[derive(Debug, Default)]
pub struct DomainSet {
    /// Each domain once, in order.
    pub domains: Vec<(String, Vec<Descriptor>)>,
    /// The names of those with a mistake.
    pub refused: BTreeSet<String>,
    /// True if there may be more domains, whose names are not known.
    pub is_blind: bool,
}

/// The last good versions of all domains.
#[derive(Debug, Default)]
pub struct GoodDomains(BTreeMap<String, Vec<Descriptor>>);

/// The same of files.
#[derive(Debug, Default)]
pub(super) struct GoodFiles {
    good: GoodDomains,
    /// The domain of each file that was ever read.
    homes: HashMap<PathBuf, String>,
}

impl GoodDomains {
    /// Takes over what is good of a set. Returns the domains to serve, and those that are refused.
    pub fn take(&mut self, set: DomainSet) -> (Domains, Vec<RefusedDomain>) {
        let DomainSet { domains, refused, is_blind } = set;
        let good = domains.into_iter().filter(|(name, _)| !refused.contains(name));
        let mut versions: BTreeMap<String, Vec<Descriptor>> = good.collect();
        for name in &refused {
            versions.extend(self.0.remove_entry(name));
        }
        self.0 = versions;
        let refused = refused.into_iter().map(|name| {
            let goes_on = self.0.contains_key(&name);
            RefusedDomain { name, goes_on }
        });
        let refused: Vec<RefusedDomain> = refused.collect();
        let missing = refused.iter().filter(|domain| !domain.goes_on).map(|domain| domain.name.as_str());
        let all = self.0.iter().map(|(name, descriptors)| (name.as_str(), descriptors.as_slice()));
        let domains = Domains::new(all).missing(missing, is_blind);
        (domains, refused)
    }

    /// The names of the domains.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl GoodFiles {
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
        self.good.take(DomainSet { domains: read.domains, refused, is_blind })
    }
}
