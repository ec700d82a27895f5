//! From a request to its answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use http::header::HOST;
use http::{HeaderMap, Method, Request, StatusCode, Version};
use hyper::body::Incoming;
use weir_grpc::{BufferBudget, CallContext, PeerAddress};
use weir_node::feature::{CallError, CallsCheck, NodeCall, NodeCalls};
use weir_time::clock::monotonic;

use crate::answers::{self, HttpAnswer};
use crate::body;
use crate::check::{self, CheckedBy, CurrentChecks};
use crate::connect::{self, CallHead};
use crate::json::{MethodShape, ProtoShapes};
use crate::metadata::{AnswerMetadata, AnswerWithMetadata, MetadataCalls};
use crate::metrics::{HttpMetrics, RouteMetrics};
use crate::openapi::openapi_text;
use crate::pace::{ConnectionPace, PaceStep};

/// The path of the description.
const OPENAPI: &str = "/openapi.json";

/// The paths of checks begin with this.
const CHECK: &str = "/check/";

/// The longest request target, in bytes.
const MAX_TARGET: usize = 8 << 10;

/// The largest body, in bytes, of a method whose request has no list of messages. One with such a list may be as large as on gRPC.
const MAX_BODY: usize = 64 << 10;

/// The routes of one worker.
pub(crate) struct Routes {
    shapes: &'static ProtoShapes,
    calls: Arc<dyn NodeCalls>,
    budget: BufferBudget,
    methods: HashMap<&'static str, MethodRoute>,
    checks: Option<Arc<CurrentChecks>>,
    has_identity: bool,
    /// Makes the calls in the place of `calls`, if answers have metadata.
    with_metadata: Option<Arc<dyn MetadataCalls>>,
    checked: RouteMetrics,
    other: RouteMetrics,
}

struct MethodRoute {
    shape: &'static MethodShape,
    metrics: RouteMetrics,
}

/// A connection, as its requests see it.
pub(crate) struct RequestContext<'a> {
    pub(crate) check: &'a CallsCheck,
    pub(crate) peer: PeerAddress,
    pub(crate) pace: &'a ConnectionPace,
}

impl Routes {
    /// Creates the routes to the methods of the services that are on.
    pub(crate) fn new(
        shapes: &'static ProtoShapes,
        calls: Arc<dyn NodeCalls>,
        budget: BufferBudget,
        metrics: &HttpMetrics,
    ) -> Self {
        let unary = shapes.methods().filter(|method| !method.is_stream && calls.serves(&method.path));
        let route = |shape: &'static MethodShape| {
            let name = shape.path.rsplit('/').next().unwrap_or_default();
            (shape.path.as_str(), MethodRoute { shape, metrics: metrics.route(name) })
        };
        let methods = unary.map(route).collect();
        let (checked, other) = (metrics.route("check"), metrics.route("other"));
        let (checks, has_identity, with_metadata) = (None, false, None);
        Self { shapes, calls, budget, methods, checks, has_identity, with_metadata, checked, other }
    }

    /// Adds the checks of proxies.
    pub(crate) fn with_checks(self, checks: Arc<CurrentChecks>, has_identity: bool) -> Self {
        Self { checks: Some(checks), has_identity, ..self }
    }

    /// Makes calls whose answers have metadata, with bodies as large as the methods allow.
    pub(crate) fn with_metadata(self, calls: Arc<dyn MetadataCalls>) -> Self {
        Self { with_metadata: Some(calls), ..self }
    }

    /// Returns the calls of the worker.
    pub(crate) fn calls(&self) -> &dyn NodeCalls {
        &*self.calls
    }

    /// Answers a request. What is left of its body is not taken for the next request.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        connection: &RequestContext<'_>,
    ) -> HttpAnswer {
        let (head, mut body) = request.into_parts();
        let request = Request::from_parts(head, ());
        let answer = self.routed(&request, &mut body, connection).await;
        body::finish(request.headers(), &mut body, answer, connection.pace).await
    }

    async fn routed(
        &self,
        request: &Request<()>,
        body: &mut Incoming,
        connection: &RequestContext<'_>,
    ) -> HttpAnswer {
        let started = monotonic();
        if let Some(refused) = malformed(request) {
            return refused_by(&self.other, refused, started, connection.peer);
        }
        if let Some(name) = request.uri().path().strip_prefix(CHECK) {
            let answer = self.check(name, request, connection).await;
            return counted(&self.checked, answer, started);
        }
        if request.uri().path() == OPENAPI {
            return counted(&self.other, self.description(request.method()), started);
        }
        let Some(route) = self.methods.get(request.uri().path()) else {
            let refused = self.unknown(request.uri().path());
            return refused_by(&self.other, refused, started, connection.peer);
        };
        match connect::head(request.method(), request.headers()) {
            Ok(head) => {
                let answer = self.method(route.shape, head, (request.headers(), body), connection).await;
                counted(&route.metrics, answer, started)
            }
            Err(refused) => refused_by(&route.metrics, *refused, started, connection.peer),
        }
    }

    /// Answers with the description of the listener, which is open to everybody.
    fn description(&self, method: &Method) -> HttpAnswer {
        match (method, openapi_text()) {
            (&Method::GET | &Method::HEAD, Some(text)) => answers::body(StatusCode::OK, answers::JSON, text),
            (_, Some(_)) => answers::only("GET"),
            (_, None) => answers::text(StatusCode::NOT_FOUND, "there is no description"),
        }
    }

    async fn check(&self, name: &str, request: &Request<()>, connection: &RequestContext<'_>) -> HttpAnswer {
        let Some(check) = self.checks.as_ref().and_then(|checks| checks.find(name)) else {
            return check::unknown();
        };
        let RequestContext { check: port, peer, .. } = *connection;
        let by = CheckedBy { calls: &*self.calls, check: port, peer, has_identity: self.has_identity };
        check.answer(request, &by).await
    }

    fn unknown(&self, path: &str) -> HttpAnswer {
        let why = match self.shapes.method(path) {
            Some(method) if method.is_stream => "this method is a stream: it is served by gRPC",
            Some(_) => "the service of this method is off, or on another port",
            None => "there is no such path; methods are POST /weir.v1.SERVICE/METHOD",
        };
        answers::text(StatusCode::NOT_FOUND, why)
    }

    async fn method(
        &self,
        method: &'static MethodShape,
        head: CallHead,
        request: (&HeaderMap, &mut Incoming),
        connection: &RequestContext<'_>,
    ) -> HttpAnswer {
        let form = head.form;
        match self.call(method, head, request, connection).await {
            Ok((answered, metadata)) => {
                let mut answer = connect::answer(self.shapes, method, form, answered);
                metadata.add_to(&mut answer);
                answer
            }
            Err(error) => answers::error(&error),
        }
    }

    /// Makes the call; an error is the listener's own.
    async fn call(
        &self,
        method: &'static MethodShape,
        head: CallHead,
        (headers, body): (&HeaderMap, &mut Incoming),
        connection: &RequestContext<'_>,
    ) -> Result<AnswerWithMetadata, CallError> {
        let context = connection.check.context(&method.path, headers)?;
        let context = CallContext { deadline: head.deadline, ..context };
        let largest = connection.check.largest_message(&method.path);
        let is_large = self.with_metadata.is_some() || self.shapes.takes_messages(method);
        let largest = if is_large { largest } else { largest.min(MAX_BODY) };
        connection.pace.set(PaceStep::Body(monotonic()));
        let (body, _held) = body::read(headers, body, &self.budget, largest).await?;
        connection.pace.set(PaceStep::Answer);
        let message = connect::message(self.shapes, method, &head, body)?;
        if let Some(calls) = &self.with_metadata {
            return Ok(calls.call(&method.path, headers.clone(), context.deadline, message).await);
        }
        let answered = match self.calls.call(&method.path, context, message) {
            NodeCall::Answered(answered) => answered,
            NodeCall::Waiting(call) => call.await,
        };
        Ok((answered.map_err(connect::unavailable), AnswerMetadata::default()))
    }
}

/// Counts an answer.
fn counted(metrics: &RouteMetrics, answer: HttpAnswer, started: Instant) -> HttpAnswer {
    metrics.count(answer.status(), monotonic().saturating_duration_since(started));
    answer
}

/// Counts and logs the answer to a request that makes no call.
fn refused_by(metrics: &RouteMetrics, answer: HttpAnswer, started: Instant, peer: PeerAddress) -> HttpAnswer {
    metrics.refuse(answer.status(), monotonic().saturating_duration_since(started), peer);
    answer
}

/// Returns the answer to a request that HTTP does not allow, apart from those that hyper refuses itself.
fn malformed(request: &Request<()>) -> Option<HttpAnswer> {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > MAX_TARGET {
        let sentence = format!("the target of the request has more than {MAX_TARGET} bytes");
        return Some(answers::text(StatusCode::URI_TOO_LONG, &sentence));
    }
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Some(answers::text(StatusCode::BAD_REQUEST, "a request has one Host"));
    }
    None
}
