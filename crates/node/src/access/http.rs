//! The check of requests to an HTTP port: the same credentials as for gRPC.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use weir_config::AccessRight;
use weir_grpc::{Intercept as _, KeptHeaders, Peer};

use super::CallerAccess;
use super::authenticated::Authenticated;
use super::check::{AccessCheck, PeerCheck};
use super::refusals::RefusalReason;

#[derive(Debug)]
pub(crate) struct PortCheck(AccessCheck);

pub(crate) struct HttpConnectionCheck(PeerCheck, Vec<HeaderName>);

impl PortCheck {
    pub(super) fn new(access: Arc<CallerAccess>) -> Self {
        Self(AccessCheck::new(access))
    }

    pub(crate) fn connected(&self, peer: Arc<Peer>) -> HttpConnectionCheck {
        HttpConnectionCheck(self.0.begin(peer), self.0.names().to_vec())
    }
}

impl HttpConnectionCheck {
    /// Returns the caller of a request that needs this right, or the reason why not. The lists of rules bound what is
    /// shown if `bounded`; otherwise the right must be without lists.
    pub(crate) fn caller(
        &self,
        path: &str,
        headers: &HeaderMap,
        right: AccessRight,
        bounded: bool,
    ) -> Result<Arc<Authenticated>, RefusalReason> {
        let Self(connection, names) = self;
        let caller = connection.known_caller(path, &KeptHeaders::from_headers(headers, names))?;
        let rights = caller.rights();
        let has = if bounded { rights.any() } else { rights.unbounded() };
        if has.has(right) { Ok(caller) } else { Err(rights.refuse(path).0) }
    }

    /// True if the `authorization` header of a request has a credential that is good.
    pub(crate) fn has_credential(&self, path: &str, headers: &HeaderMap) -> bool {
        let Self(connection, names) = self;
        headers.contains_key(AUTHORIZATION)
            && connection
                .known_caller(path, &KeptHeaders::from_headers(headers, names))
                // What a connection proves, by itself or by a proxy, lasts as long as it does.
                .is_ok_and(|caller| caller.can_end())
    }
}
