//! Who may see what on the admin port, and what browsers may be made to do with it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use weir_config::{AccessRight, AdminPath, ServerConfig};
use weir_grpc::Peer;

use crate::access::{Authenticated, CallerAccess, HttpConnectionCheck, PortCheck, RefusalReason};

/// The largest body of a request, in bytes.
const MAX_BODY: u64 = 1 << 20;

/// Paths that need no credential: probes, and the page without its data.
const OPEN: [&str; 6] = ["/livez", "/readyz", "/healthcheck", "/ui", "/ui/page.js", "/ui/page.css"];

/// The path that has data of consumers.
const UI_DATA: &str = "/ui/data";

/// The path that answers Envoy's requests.
const JSON: &str = "/json";

/// The gate in front of the admin port's paths.
#[derive(Debug)]
pub struct AdminGate {
    /// `None` where the server has no identity.
    check: Option<PortCheck>,
    open: Vec<AdminPath>,
    hosts: Vec<String>,
}

/// The gate of one connection.
#[derive(Clone)]
pub(super) struct ConnectionGate {
    gate: Arc<AdminGate>,
    check: Option<Arc<HttpConnectionCheck>>,
}

/// The caller of a request, where the server has identity.
#[derive(Clone)]
pub(crate) struct AdminCaller(pub(crate) Option<Arc<Authenticated>>);

impl AdminGate {
    /// Creates the gate of a server.
    #[must_use]
    pub fn new(access: Option<Arc<CallerAccess>>, server: &ServerConfig) -> Arc<Self> {
        let check = access.map(|access| access.port());
        Arc::new(Self { check, open: server.admin_open.clone(), hosts: server.admin_hosts.clone() })
    }

    /// Creates the gate of a port that is open to everybody, as those of envoyproxy/ratelimit are.
    #[must_use]
    pub fn open(server: &ServerConfig) -> Arc<Self> {
        Self::new(None, server)
    }

    /// Begins a connection.
    pub(super) fn connected(self: &Arc<Self>, peer: Peer) -> ConnectionGate {
        let check = self.check.as_ref().map(|check| Arc::new(check.connected(Arc::new(peer))));
        ConnectionGate { gate: Arc::clone(self), check }
    }

    /// True for a name that no web page can have: an address, `localhost`, or one of the configuration.
    fn knows_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let name = name.to_ascii_lowercase();
        name == "localhost" || name.parse::<IpAddr>().is_ok() || self.hosts.contains(&name)
    }

    fn is_open(&self, path: &str) -> bool {
        OPEN.contains(&path)
            || self.open.iter().any(|open| match open {
                AdminPath::Metrics => path == "/metrics",
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
        // HTTP/2 has the host in the URI.
        let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
        let host = host.or_else(|| uri.authority().map(|authority| authority.as_str())).unwrap_or_default();
        if [UI_DATA, super::UI_CONTROL].contains(&path)
            && !headers.contains_key(header::AUTHORIZATION)
            && !self.gate.knows_host(host)
        {
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
        check
            .caller(path, headers, right)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_page_can_have_are_known() {
        let server =
            ServerConfig { admin_hosts: vec!["weir.internal".to_owned()], ..ServerConfig::default() };
        let gate = AdminGate::new(None, &server);
        let knows = |host: &str| gate.knows_host(host);
        for good in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "localhost",
            "LOCALHOST:1",
            "weir.internal:8080",
        ] {
            assert!(knows(good), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            ":8080",
        ] {
            assert!(!knows(bad), "{bad}");
        }
    }
}
