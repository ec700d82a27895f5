//! Access to the admin port, and bounds of what browsers may be made to do with it.

mod hosts;

use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use weir_config::{AccessRight, AdminPath, ServerConfig};
use weir_grpc::{Caller, Peer};

use self::hosts::{KnownHosts, TwoHosts};
use crate::access::{Authenticated, CallerAccess, HttpConnectionCheck, PortCheck, RefusalReason};

/// The largest body of a request, in bytes.
const MAX_BODY: u64 = 1 << 20;

/// Paths of probes. They need no credential, and answer to every name: a load balancer asks with its own.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/healthcheck"];

/// The page without its data. It needs no credential.
const PAGE: [&str; 4] = ["/ui", "/ui/", "/ui/page.js", "/ui/page.css"];

const UI_DATA: &str = "/ui/data";

const METRICS: &str = "/metrics";

/// The path that answers Envoy's requests.
const JSON: &str = "/json";

/// The gate in front of the admin port's paths.
#[derive(Debug)]
pub struct AdminGate {
    /// `None` where the server has no identity.
    check: Option<PortCheck>,
    open: Vec<AdminPath>,
    hosts: KnownHosts,
}

#[derive(Clone)]
pub(super) struct ConnectionGate {
    gate: Arc<AdminGate>,
    check: Option<Arc<HttpConnectionCheck>>,
}

/// The caller of a request, where the server has identity.
#[derive(Clone)]
pub struct AdminCaller(pub(crate) Option<Arc<Authenticated>>);

impl AdminCaller {
    /// Returns the caller for calls of services.
    #[must_use]
    pub fn into_caller(self) -> Option<Caller> {
        self.0.map(Caller::new)
    }
}

impl AdminGate {
    /// Creates the gate of a server.
    pub fn new(access: Option<Arc<CallerAccess>>, server: &ServerConfig) -> Arc<Self> {
        let check = access.map(|access| access.port());
        let hosts = KnownHosts::new(server.admin_hosts.clone());
        Arc::new(Self { check, open: server.admin_open.clone(), hosts })
    }

    /// Creates the gate of a port that is open to everybody and under every name, as those of envoyproxy/ratelimit are.
    pub fn open() -> Arc<Self> {
        Arc::new(Self { check: None, open: Vec::new(), hosts: KnownHosts::all() })
    }

    pub(super) fn connected(self: &Arc<Self>, peer: Peer) -> ConnectionGate {
        let check = self.check.as_ref().map(|check| Arc::new(check.connected(Arc::new(peer))));
        ConnectionGate { gate: Arc::clone(self), check }
    }

    fn is_open(&self, path: &str) -> bool {
        PROBES.contains(&path)
            || PAGE.contains(&path)
            || self.open.iter().any(|open| match open {
                AdminPath::Metrics => path == METRICS,
                AdminPath::UiData => path == UI_DATA,
            })
    }
}

impl ConnectionGate {
    /// Checks one request. The order matters: what names no caller is told nothing.
    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<AdminCaller, Box<Response>> {
        let path = uri.path();
        let length =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: u64| length > MAX_BODY) {
            return Err(Box::new(StatusCode::PAYLOAD_TOO_LARGE.into_response()));
        }
        let is_known = match self.gate.hosts.check(uri, headers) {
            Ok(is_known) => is_known || PROBES.contains(&path),
            Err(TwoHosts) => {
                let why = "a request has one Host line\n";
                return Err(Box::new((StatusCode::BAD_REQUEST, why).into_response()));
            }
        };
        // A browser sends a certificate with the requests of every page. A token is sent only by who knows it.
        let has_token = || self.check.as_ref().is_some_and(|check| check.has_credential(path, headers));
        if !is_known && !has_token() {
            let why = "this name is not known here; add it to server.admin_hosts, or use an address\n";
            return Err(Box::new((StatusCode::MISDIRECTED_REQUEST, why).into_response()));
        }
        let Some(check) = &self.check else { return Ok(AdminCaller(None)) };
        if self.gate.is_open(path) {
            return Ok(AdminCaller(None));
        }
        let right = match path {
            UI_DATA => AccessRight::Usage,
            JSON => AccessRight::Envoy,
            _ => AccessRight::Inspect,
        };
        // The metrics are of all strategies and queues, so lists cannot bound them.
        let bounded = path != METRICS;
        check
            .caller(path, headers, right, bounded)
            .map(|caller| AdminCaller(Some(caller)))
            .map_err(|reason| Box::new(refused(reason)))
    }
}

fn refused(reason: RefusalReason) -> Response {
    match reason {
        RefusalReason::Rights => (StatusCode::FORBIDDEN, "the caller has no right to this\n").into_response(),
        RefusalReason::Busy => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        _ => {
            let scheme = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
            (StatusCode::UNAUTHORIZED, scheme, "the request needs a valid credential\n").into_response()
        }
    }
}

/// The layer in front of all paths. No path changes anything, so none needs more than this against other origins; there
/// are no CORS headers.
pub(super) async fn admit(
    Shared(gate): Shared<ConnectionGate>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut response = match gate.check(request.uri(), request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => *refusal,
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    response
}
