//! Access control: names of callers, their rights, and the refusals.
//!
//! ```text
//!   connection ─ certificate, user id ─┐
//!   headers ─ token, JWT, forwarded    ├─ check.rs ─ name ── rules.rs ─ CallerRights ── Rights, a field of every question
//!                                      ┘
//! ```
//!
//! Transports only hand over the certificate and the headers. A question cannot be made without [`Rights`], and the
//! limiter, leases, queues, usage and Envoy's service check them before anything else.

mod authenticated;
mod bearer;
mod caller_rights;
mod check;
mod compiled_rule;
mod constant_time;
mod credentials;
mod failures;
mod http;
mod jwt;
mod jwt_key;
mod name_set;
mod names;
mod proof;
mod refusals;
mod repeated;
mod rights;
mod rules;
mod signature_time;
mod signatures;
mod snapshot_rights;
mod tokens;
mod worker;

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Release};

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::rand::{SecureRandom as _, SystemRandom};
use weir_config::{AuthorizeRule, Config, IdentityConfig};
use weir_grpc::Intercept;
use weir_time::clock::Clock;

pub(crate) use self::authenticated::Authenticated;
pub(crate) use self::caller_rights::NamedFields;
pub use self::caller_rights::{CallerRights, Explained};
pub use self::check::AccessCheck;
pub use self::credentials::CredentialFault;
use self::credentials::CredentialFiles;
pub(crate) use self::http::{HttpConnectionCheck, PortCheck};
pub use self::names::CallerName;
pub use self::refusals::{AccessMetrics, RefusalReason, Refused};
pub(crate) use self::repeated::{RoundRights, is_same};
pub use self::rights::Rights;
use self::rules::AccessRules;
pub use self::snapshot_rights::SnapshotRights;
use crate::known_methods::KnownMethods;

const TOKEN_BYTES: usize = 32;

/// Identity and rights of a server, shared by all of its ports and workers.
#[derive(Debug)]
pub struct CallerAccess {
    identity: IdentityConfig,
    /// True in the place of envoyproxy/ratelimit, which reads no names: a verified certificate is enough.
    serves_nameless: bool,
    rules: ArcSwap<AccessRules>,
    rules_generation: AtomicU64,
    files: ArcSwap<CredentialFiles>,
    /// The generation of `files`, stored after them: each call reads it, and a number is cheaper to read.
    generation: AtomicU64,
    /// State of the files when they were read.
    seen: Mutex<Vec<FileState>>,
    clock: Clock,
    metrics: Arc<AccessMetrics>,
    methods: KnownMethods,
}

impl CallerAccess {
    /// Creates the access of a configuration; `None` if the server has no identity: then everybody has all rights.
    pub fn from_config(
        config: &Config,
        clock: Clock,
        metrics: Arc<AccessMetrics>,
    ) -> Result<Option<Arc<Self>>, CredentialFault> {
        Self::knowing(config, clock, metrics, KnownMethods::default())
    }

    /// Reads the files of credentials, on a node with more methods.
    pub(crate) fn knowing(
        config: &Config,
        clock: Clock,
        metrics: Arc<AccessMetrics>,
        methods: KnownMethods,
    ) -> Result<Option<Arc<Self>>, CredentialFault> {
        if !config.has_identity() {
            return Ok(None);
        }
        let identity = config.server.identity.clone().unwrap_or_default();
        // Looked at before they are read: a change in between is found by the next look.
        let seen = Mutex::new(file_states(&identity));
        let files = CredentialFiles::read(&identity, 0)?;
        let rules = AccessRules::new(config.authorize.as_deref(), Arc::clone(&metrics));
        let (rules, rules_generation) = (ArcSwap::from_pointee(rules), AtomicU64::new(0));
        let files = ArcSwap::from_pointee(files);
        let generation = AtomicU64::new(0);
        let serves_nameless = config.server.alone.is_some();
        Ok(Some(Arc::new(Self {
            identity,
            serves_nameless,
            rules,
            rules_generation,
            files,
            generation,
            seen,
            clock,
            metrics,
            methods,
        })))
    }

    /// Returns the interceptor of one worker, or of the admin port: it has a cache of its own.
    #[must_use]
    pub fn intercept(self: &Arc<Self>) -> Arc<dyn Intercept> {
        Arc::new(AccessCheck::new(Arc::clone(self)))
    }

    /// Returns the check of the requests of an HTTP port.
    pub(crate) fn port(self: &Arc<Self>) -> PortCheck {
        PortCheck::new(Arc::clone(self))
    }

    /// The current rules, for the first snapshot.
    pub fn snapshot_rights(&self) -> SnapshotRights {
        SnapshotRights::new(self.rules.load_full())
    }

    /// The rules of the next snapshot; `None` if they are the current ones.
    pub fn next_rules(&self, rules: Option<&[AuthorizeRule]>) -> Option<SnapshotRights> {
        self.rules.load().next(rules).map(|next| SnapshotRights::new(Arc::new(next)))
    }

    /// Makes these rules the current ones, also for open connections: methods that no snapshot answers, and the first look
    /// at a caller, are judged by them.
    pub fn set_rules(&self, next: &SnapshotRights) {
        let Some(next) = next.rules() else { return };
        self.rules.store(Arc::clone(next));
        self.rules_generation.store(next.generation(), Release);
    }

    /// Reads the files of credentials again if they have changed. After a fault the old ones stay.
    pub fn poll(&self) -> Option<Result<(), CredentialFault>> {
        let mut seen = self.seen.lock();
        let now = file_states(&self.identity);
        if *seen == now {
            return None;
        }
        *seen = now;
        Some(self.read_again())
    }

    /// Reads the files of credentials again at once. After a fault the old ones stay.
    pub fn reload(&self) -> Result<(), CredentialFault> {
        let mut seen = self.seen.lock();
        *seen = file_states(&self.identity);
        self.read_again()
    }

    fn read_again(&self) -> Result<(), CredentialFault> {
        let generation = self.files.load().generation() + 1;
        let read = CredentialFiles::read(&self.identity, generation);
        read.map(|files| {
            self.files.store(Arc::new(files));
            self.generation.store(generation, Release);
        })
    }
}

/// Detects a changed file: its identity, its size and its times.
type FileState = Option<(u64, u64, u64, i64, i64, i64, i64)>;

fn file_states(identity: &IdentityConfig) -> Vec<FileState> {
    let files = identity.tokens_file.iter().chain(identity.jwt.iter().map(|issuer| &issuer.jwks_file));
    let state = |path| {
        let found = std::fs::metadata(path).ok()?;
        let (changed, modified) = ((found.ctime(), found.ctime_nsec()), (found.mtime(), found.mtime_nsec()));
        Some((found.dev(), found.ino(), found.size(), changed.0, changed.1, modified.0, modified.1))
    };
    files.map(state).collect()
}

/// Explains whether rules allow a caller something, without a server.
pub fn rights_of(rules: Option<&[AuthorizeRule]>, name: &CallerName) -> Arc<CallerRights> {
    AccessRules::new(rules, Arc::default()).rights_of(name)
}

/// Makes a token of 32 random bytes, and the line of the tokens file for it.
pub fn new_token(name: &str) -> Option<(String, String)> {
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    let token = URL_SAFE_NO_PAD.encode(bytes);
    let digest = tokens::digest(token.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some((token, format!("{name} {hex}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_has_the_digest_of_its_line() {
        let (token, line) = new_token("shop").unwrap();
        assert_eq!(token.len(), 43);
        let hex: String = tokens::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(line, format!("shop {hex}"));
        assert_ne!(new_token("shop").unwrap().0, token);
    }
}
