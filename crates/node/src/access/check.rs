//! The check of every call: from a connection and its headers to a caller with rights. Both transports use it.

use std::sync::Arc;

use http::HeaderName;
use parking_lot::Mutex;
use weir_config::RightSet;
use weir_grpc::{CallRefusal, Caller, CheckCalls, Intercept, KeptHeaders, Peer, PeerAddress};
use weir_time::clock::monotonic;
use zeroize::Zeroizing;

use super::CallerAccess;
use super::authenticated::Authenticated;
use super::bearer::bearer;
use super::constant_time::same;
use super::failures::Failures;
use super::names::CallerName;
use super::proof::Proof;
use super::refusals::RefusalReason;
use super::worker::{MethodRights, WorkerState};
use crate::client_network::ClientNetwork;

const AUTHORIZATION: usize = 0;
const FORWARDED: usize = 1;

/// The interceptor of one worker.
#[derive(Debug)]
pub struct AccessCheck {
    access: Arc<CallerAccess>,
    worker: Arc<WorkerState>,
    names: [HeaderName; 2],
}

pub(super) struct PeerCheck {
    access: Arc<CallerAccess>,
    worker: Arc<WorkerState>,
    peer: Arc<Peer>,
    /// True if the peer is a proxy that names the certificates of its callers.
    is_proxy: bool,
    state: Mutex<ConnectionState>,
}

struct ConnectionState {
    /// Caller without a credential in the headers.
    own: Result<Arc<Authenticated>, RefusalReason>,
    /// The last credential, with the index of its header: what one header proves, another does not.
    last: Option<(usize, Zeroizing<Vec<u8>>, Arc<Authenticated>)>,
    failures: Failures,
    /// The last method, and the rights of which it needs one.
    method: (String, MethodRights),
    /// True if `own` may call the last method, under the rules that its rights are of.
    own_may: bool,
}

impl AccessCheck {
    pub(super) fn new(access: Arc<CallerAccess>) -> Self {
        let worker = Arc::new(WorkerState::new(access.methods.clone()));
        let names =
            [HeaderName::from_static("authorization"), HeaderName::from_static("x-forwarded-client-cert")];
        Self { access, worker, names }
    }
}

impl Intercept for AccessCheck {
    fn names(&self) -> &[HeaderName] {
        &self.names
    }

    fn connected(&self, peer: Arc<Peer>) -> Arc<dyn CheckCalls> {
        Arc::new(self.begin(peer))
    }
}

impl AccessCheck {
    pub(super) fn begin(&self, peer: Arc<Peer>) -> PeerCheck {
        let access = Arc::clone(&self.access);
        let is_proxy = match peer.address() {
            PeerAddress::Tcp(address) => {
                access.identity.forwarded_from.iter().any(|net| net.has(address.ip()))
            }
            PeerAddress::Unix { .. } | PeerAddress::Unknown => false,
        };
        let own = match (peer.certificate(), peer.address()) {
            (Some(certificate), _) => {
                let nameless = access.serves_nameless.then(|| CallerName::one(CallerName::NAMELESS));
                CallerName::of_certificate(certificate.end_entity()).or(nameless)
            }
            (None, PeerAddress::Unix { uid: Some(uid) }) => Some(CallerName::one(&format!("uid:{uid}"))),
            (None, _) => Some(CallerName::one(CallerName::ANONYMOUS)),
        };
        let own = match own {
            Some(name) => Ok(Authenticated::new(&access, Proof::of_connection(name), 0)),
            None => {
                access.metrics.refuse(RefusalReason::NoName, &peer.address().to_string(), "the connection");
                peer.disconnect();
                Err(RefusalReason::NoName)
            }
        };
        let method = (String::new(), MethodRights::OneOf(RightSet::default()));
        let state = Mutex::new(ConnectionState {
            own,
            last: None,
            failures: Failures::default(),
            method,
            own_may: false,
        });
        PeerCheck { access, worker: Arc::clone(&self.worker), peer, is_proxy, state }
    }
}

impl CheckCalls for PeerCheck {
    fn check(&self, method: &str, headers: &KeptHeaders) -> Result<Caller, CallRefusal> {
        let mut state = self.state.lock();
        // A connection mostly repeats one method, and shows nothing but its certificate.
        if state.own_may
            && headers.is_empty()
            && state.method.0 == method
            && let Ok(own) = &state.own
            && own.is_current()
        {
            return Ok(Caller::new(Arc::clone(own)));
        }
        state.own_may = false;
        let needed = self.worker.rights_of(method, &mut state.method);
        if needed == MethodRights::Open {
            // Nothing that a caller without a right could not do either.
            return Ok(Caller::new(Arc::new(())));
        }
        let caller = self.caller(headers, &mut state).map_err(|reason| {
            self.failed(reason, method, &mut state);
            reason.refusal()
        })?;
        let may = match needed {
            MethodRights::OneOf(rights) => caller.rights().any().meets(rights),
            MethodRights::AnyCaller | MethodRights::Open => !caller.rights().name().is_anonymous(),
        };
        if !may {
            return Err(caller.rights().refuse(method).0.refusal());
        }
        state.own_may = headers.is_empty() && state.method.0 == method;
        Ok(Caller::new(caller))
    }
}

impl PeerCheck {
    /// Returns the caller of a request, or counts and logs why there is none.
    pub(super) fn known_caller(
        &self,
        what: &str,
        headers: &KeptHeaders,
    ) -> Result<Arc<Authenticated>, RefusalReason> {
        let mut state = self.state.lock();
        let caller = self.caller(headers, &mut state);
        caller.inspect_err(|reason| self.failed(*reason, what, &mut state))
    }

    fn caller(
        &self,
        headers: &KeptHeaders,
        state: &mut ConnectionState,
    ) -> Result<Arc<Authenticated>, RefusalReason> {
        if self.access.reads_tokens() {
            let mut values = headers.all(AUTHORIZATION);
            match (values.next(), values.next()) {
                (None, _) => {}
                (Some(value), None) => return self.presented(value, state),
                (Some(_), Some(_)) => return Err(RefusalReason::Malformed),
            }
        }
        if self.is_proxy
            && let Some(value) = headers.all(FORWARDED).last()
        {
            let name = CallerName::of_forwarded(value).ok_or(RefusalReason::Forwarded)?;
            return self.remembered((FORWARDED, value), state, || {
                Ok(Authenticated::new(&self.access, Proof::of_connection(name), 0))
            });
        }
        if let Ok(own) = &mut state.own
            && !own.is_current()
        {
            *own = Arc::clone(own.newest());
        }
        state.own.clone()
    }

    /// Proves a credential of the `authorization` header. It decides alone: a bad one is not anonymous.
    fn presented(
        &self,
        value: &[u8],
        state: &mut ConnectionState,
    ) -> Result<Arc<Authenticated>, RefusalReason> {
        self.remembered((AUTHORIZATION, value), state, || {
            let credential = bearer(value).ok_or(RefusalReason::Malformed)?;
            self.worker.proven(&self.access, credential, ClientNetwork::from_peer(&self.peer.address()))
        })
    }

    /// Compares with the last credential of the connection first, in constant time.
    fn remembered(
        &self,
        (header, value): (usize, &[u8]),
        state: &mut ConnectionState,
        prove: impl FnOnce() -> Result<Arc<Authenticated>, RefusalReason>,
    ) -> Result<Arc<Authenticated>, RefusalReason> {
        if let Some((of, last, caller)) = &state.last
            && *of == header
            && same(last, value)
            && caller.check().is_ok()
            && caller.is_current()
        {
            return Ok(Arc::clone(caller));
        }
        let caller = prove()?;
        state.last = Some((header, Zeroizing::new(value.to_vec()), Arc::clone(&caller)));
        Ok(caller)
    }

    #[cold]
    fn failed(&self, reason: RefusalReason, what: &str, state: &mut ConnectionState) {
        self.access.metrics.refuse(reason, &self.peer.address().to_string(), what);
        if reason != RefusalReason::Busy && state.failures.add(monotonic()) {
            self.peer.disconnect();
        }
    }
}

impl CallerAccess {
    fn reads_tokens(&self) -> bool {
        self.identity.tokens_file.is_some() || !self.identity.jwt.is_empty()
    }
}
