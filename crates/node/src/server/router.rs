//! tonic's router for the services of one worker, shared by all transports.

use std::sync::Arc;

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service as _, http};
use tonic::service::Routes;

use crate::feature::ServiceSpec;
use crate::known_methods::KnownMethods;

/// Bound of characters of an unknown path that are sent back.
const MAX_PATH: usize = 128;

/// All services, by the paths of their methods. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Router {
    routes: Routes,
    known: Arc<KnownServices>,
}

/// Services that the paths of calls may name.
#[derive(Debug)]
pub(super) struct KnownServices {
    pub(super) of_features: Vec<ServiceSpec>,
    pub(super) methods: KnownMethods,
}

impl Router {
    /// Creates the router. A path of one of the services `known` that is off gets an answer that says what it takes.
    pub(super) fn new(routes: Routes, known: Arc<KnownServices>) -> Self {
        Self { routes: routes.prepare(), known }
    }

    /// Returns the name of the method with a path; it is empty for an unknown one.
    pub(super) fn name_of(&self, path: &str) -> &'static str {
        self.known.methods.name_of(path).unwrap_or_default()
    }

    /// Routes a call. Its context beside the headers is in the request's extensions.
    pub(super) fn call(
        &self,
        request: http::Request<Body>,
    ) -> impl Future<Output = http::Response<Body>> + Send + use<> {
        let (mut routes, known) = (self.routes.clone(), Arc::clone(&self.known));
        let path = request.uri().clone();
        async move {
            match routes.call(request).await {
                Ok(response) if has_no_method(&response) => {
                    unknown(path.path(), &known.of_features).into_http()
                }
                Ok(response) => with_our_code(response),
                Err(never) => match never {},
            }
        }
    }
}

/// True if no service has the path: then routes and generated servers answer UNIMPLEMENTED without a message.
fn has_no_method(response: &http::Response<Body>) -> bool {
    let headers = response.headers();
    headers.get(Status::GRPC_STATUS).is_some_and(|code| code == "12")
        && !headers.contains_key(Status::GRPC_MESSAGE)
}

/// Replaces OUT_OF_RANGE, with which tonic (unlike other gRPC servers) refuses too large messages, by
/// RESOURCE_EXHAUSTED. No service of ours returns OUT_OF_RANGE.
fn with_our_code(mut response: http::Response<Body>) -> http::Response<Body> {
    const OUT_OF_RANGE: &str = "11";
    const RESOURCE_EXHAUSTED: http::HeaderValue = http::HeaderValue::from_static("8");
    if let Some(code) = response.headers_mut().get_mut(Status::GRPC_STATUS)
        && code == OUT_OF_RANGE
    {
        *code = RESOURCE_EXHAUSTED;
    }
    response
}

/// Services that a configuration may lack, and what it takes to have them.
const OPTIONAL: [(&str, &str); 1] =
    [("/weir.v1.AdminService/", "AdminService is there with `server.admin_service: true`")];

fn unknown(path: &str, known: &[ServiceSpec]) -> Status {
    let of_node = OPTIONAL.iter().find(|(service, _)| path.starts_with(service)).map(|(_, needs)| *needs);
    let service = path.strip_prefix('/').and_then(|path| path.split_once('/')).map(|(service, _)| service);
    let of_features = known.iter().find(|spec| service == Some(spec.name)).map(|spec| spec.needs);
    let needs = of_node.or(of_features.filter(|needs| !needs.is_empty()));
    let needs = needs.map_or_else(String::new, |needs| format!("; {needs}"));
    let path = path.escape_debug().take(MAX_PATH).collect::<String>();
    Status::unimplemented(format!("there is no method `{path}`{needs}"))
}
