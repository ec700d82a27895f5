//! State shared by the connections of a worker: valid credentials, the time for signatures, and the methods.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use weir_config::{CALLER_SERVICES, OPEN_SERVICES, RightSet};
use weir_time::clock::monotonic;

use super::CallerAccess;
use super::authenticated::Authenticated;
use super::refusals::RefusalReason;
use super::signature_time::SignatureTime;
use super::tokens::{Digest, digest};
use crate::client_network::ClientNetwork;
use crate::known_methods::KnownMethods;

/// Good credentials that a worker remembers.
const MAX_KEPT: usize = 4096;

pub(super) struct WorkerState {
    kept: Mutex<HashMap<Digest, Arc<Authenticated>>>,
    signatures: Mutex<SignatureTime>,
    methods: KnownMethods,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MethodRights {
    Open,
    AnyCaller,
    OneOf(RightSet),
}

impl fmt::Debug for WorkerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerState").field("kept", &self.kept.lock().len()).finish_non_exhaustive()
    }
}

impl WorkerState {
    pub(super) fn new(methods: KnownMethods) -> Self {
        let signatures = Mutex::new(SignatureTime::new(monotonic()));
        Self { kept: Mutex::default(), signatures, methods }
    }

    /// Returns the rights of which a method needs one. A method without a row in the table can be called by nobody.
    pub(super) fn rights_of(&self, method: &str, last: &mut (String, MethodRights)) -> MethodRights {
        if last.0 == method {
            return last.1;
        }
        let begins = |services: &[&str]| services.iter().any(|service| method.starts_with(service));
        let rights = match self.methods.rights_to(method) {
            Some(rights) => MethodRights::OneOf(rights),
            None if begins(&OPEN_SERVICES) => MethodRights::Open,
            None if begins(&CALLER_SERVICES) => MethodRights::AnyCaller,
            None => MethodRights::OneOf(RightSet::default()),
        };
        if matches!(rights, MethodRights::OneOf(rights) if rights != RightSet::default()) {
            method.clone_into(&mut last.0);
            last.1 = rights;
        }
        rights
    }

    /// Proves a credential: a token, or a JWT.
    pub(super) fn proven(
        &self,
        access: &Arc<CallerAccess>,
        credential: &str,
        peer: ClientNetwork,
    ) -> Result<Arc<Authenticated>, RefusalReason> {
        let digest = digest(credential.as_bytes());
        if let Some(known) = self.kept.lock().get_mut(&digest) {
            match known.check() {
                Ok(()) => {
                    if !known.is_current() {
                        *known = Arc::clone(known.newest());
                    }
                    return Ok(Arc::clone(known));
                }
                Err(RefusalReason::Expired) => return Err(RefusalReason::Expired),
                Err(_) => {}
            }
        }
        let (files, now) = (access.files.load(), access.clock.now());
        let proof = match files.token(&digest, now) {
            Some(proof) => proof?,
            None => {
                let (jwt, key) = files.jwt(credential, now)?;
                let started = monotonic();
                let half = self.signatures.lock().half_for(started, peer).ok_or(RefusalReason::Busy)?;
                let verified = jwt.verify(key);
                let ended = monotonic();
                let took = ended.saturating_duration_since(started);
                self.signatures.lock().spend(took, half, ended, peer);
                verified?
            }
        };
        let caller = Authenticated::new(access, proof, files.generation());
        let mut kept = self.kept.lock();
        if kept.len() >= MAX_KEPT && !kept.contains_key(&digest) {
            let any = kept.keys().next().copied();
            any.map(|any| kept.remove(&any));
        }
        kept.insert(digest, Arc::clone(&caller));
        Ok(caller)
    }
}

#[cfg(test)]
mod tests {
    use weir_config::{Config, ConfigOverrides};
    use weir_time::clock::Clock;

    use super::super::new_token;
    use super::*;

    #[test]
    fn so_many_good_credentials_are_kept_and_no_bad_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (tokens, lines): (Vec<String>, Vec<String>) =
            (0..MAX_KEPT + 10).map(|number| new_token(&format!("shop-{number}")).unwrap()).unzip();
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        let text = format!("server: {{ identity: {{ tokens_file: {} }} }}\n", file.path().display());
        let text =
            text + "strategies: { a: { limits: [{ name: b, per: [consumer], uniform: { interval: 1s } }] } }";
        let config = Config::parse(&text, "cache", &ConfigOverrides::default()).unwrap();
        let access = CallerAccess::from_config(&config, Clock::System, Arc::default()).unwrap().unwrap();
        let (worker, peer) = (WorkerState::new(KnownMethods::default()), ClientNetwork::new(None));
        assert_eq!(worker.proven(&access, "nobody's", peer).unwrap_err(), RefusalReason::Unknown);
        assert!(worker.kept.lock().is_empty());
        for (number, token) in tokens.iter().enumerate() {
            let caller = worker.proven(&access, token, peer).unwrap();
            assert_eq!(caller.rights().name().shown(), format!("token:shop-{number}"));
            assert_eq!(worker.kept.lock().len(), (number + 1).min(MAX_KEPT));
        }
        // Those that made room are proven again.
        assert!(tokens.iter().all(|token| worker.proven(&access, token, peer).is_ok()));
    }
}
