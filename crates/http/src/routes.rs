//! From a request to its answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST};
use http::{Method, Request, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use weir_grpc::{BufferBudget, CallContext, HeldBytes, PeerAddress};
use weir_node::feature::{CallError, CallsCheck, NodeCall, NodeCalls};
use weir_time::clock::monotonic;

use crate::answers::{self, HttpAnswer, call_error};
use crate::check::{self, CheckSettings, CheckedBy, ProxyCheck};
use crate::codes::UNAVAILABLE;
use crate::connect::{self, CallHead};
use crate::json::{MethodShape, ProtoShapes};
use crate::metrics::{HttpMetrics, RouteMetrics};
use crate::openapi::openapi_text;
use crate::pace::{ConnectionPace, PaceStep};

/// The path of the description.
const OPENAPI: &str = "/openapi.json";

/// The paths of checks begin with this.
const CHECK: &str = "/check/";

/// The longest request target, in bytes.
const MAX_TARGET: usize = 8 << 10;

/// The largest body of most methods, in bytes.
const MAX_BODY: usize = 64 << 10;

/// Methods whose bodies may be as large as on gRPC.
const LARGE: [&str; 2] = ["/weir.v1.RateLimitService/ShouldAllowBatch", "/weir.v1.QueueService/Enqueue"];

/// The routes of one worker.
pub(crate) struct Routes {
    shapes: &'static ProtoShapes,
    calls: Arc<dyn NodeCalls>,
    budget: BufferBudget,
    methods: HashMap<&'static str, MethodRoute>,
    checks: HashMap<String, ProxyCheck>,
    has_identity: bool,
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
        Self { shapes, calls, budget, methods, checks: HashMap::new(), has_identity: false, checked, other }
    }

    /// Adds the checks of proxies.
    pub(crate) fn with_checks(
        self,
        checks: &[Arc<CheckSettings>],
        has_identity: bool,
        metrics: &HttpMetrics,
    ) -> Self {
        let check = |settings: &Arc<CheckSettings>| {
            (settings.name.clone(), ProxyCheck::new(Arc::clone(settings), metrics.check(&settings.name)))
        };
        Self { checks: checks.iter().map(check).collect(), has_identity, ..self }
    }

    /// Returns the calls of the worker.
    pub(crate) fn calls(&self) -> &dyn NodeCalls {
        &*self.calls
    }

    /// Answers a request.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        connection: &RequestContext<'_>,
    ) -> HttpAnswer {
        let started = monotonic();
        if let Some(refused) = malformed(&request) {
            return self.other(refused, started);
        }
        if let Some(name) = request.uri().path().strip_prefix(CHECK) {
            let answer = self.check(name, &request, connection).await;
            self.checked.count(answer.status(), monotonic().saturating_duration_since(started));
            return answer;
        }
        if request.uri().path() == OPENAPI {
            return self.other(self.description(request.method()), started);
        }
        let Some(route) = self.methods.get(request.uri().path()) else {
            let refused = self.unknown(request.uri().path());
            return self.other(refused, started);
        };
        let answer = match connect::head(request.method(), request.headers()) {
            Ok(head) => self.method(route.shape, head, request, connection).await,
            Err(refused) => *refused,
        };
        route.metrics.count(answer.status(), monotonic().saturating_duration_since(started));
        answer
    }

    /// Answers with the description of the listener, which is open to everybody.
    fn description(&self, method: &Method) -> HttpAnswer {
        match (method, openapi_text()) {
            (&Method::GET | &Method::HEAD, Some(text)) => answers::body(StatusCode::OK, answers::JSON, text),
            (_, Some(_)) => answers::only("GET"),
            (_, None) => answers::text(StatusCode::NOT_FOUND, "there is no description"),
        }
    }

    async fn check(
        &self,
        name: &str,
        request: &Request<Incoming>,
        connection: &RequestContext<'_>,
    ) -> HttpAnswer {
        let Some(check) = self.checks.get(name) else { return check::unknown() };
        let RequestContext { check: port, peer, .. } = *connection;
        let by = CheckedBy { calls: &*self.calls, check: port, peer, has_identity: self.has_identity };
        check.answer(request, &by).await
    }

    fn other(&self, answer: HttpAnswer, started: Instant) -> HttpAnswer {
        self.other.count(answer.status(), monotonic().saturating_duration_since(started));
        answer
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
        request: Request<Incoming>,
        connection: &RequestContext<'_>,
    ) -> HttpAnswer {
        let form = head.form;
        let answered = self.call(method, head, request, connection).await;
        match answered {
            Ok(answered) => connect::answer(self.shapes, method, form, answered),
            Err(error) => answers::error(&error),
        }
    }

    /// Makes the call; an error is the listener's own.
    async fn call(
        &self,
        method: &'static MethodShape,
        head: CallHead,
        request: Request<Incoming>,
        connection: &RequestContext<'_>,
    ) -> Result<Result<Bytes, CallError>, CallError> {
        let context = connection.check.context(&method.path, request.headers())?;
        let context = CallContext { deadline: head.deadline, ..context };
        let largest = connection.check.largest_message(&method.path);
        let largest = if LARGE.contains(&method.path.as_str()) { largest } else { largest.min(MAX_BODY) };
        connection.pace.set(PaceStep::Body(monotonic()));
        let (body, _held) = self.body(request, largest).await?;
        connection.pace.set(PaceStep::Answer);
        let message = connect::message(self.shapes, method, &head, body)?;
        Ok(match self.calls.call(&method.path, context, message) {
            NodeCall::Answered(answered) => answered,
            NodeCall::Waiting(call) => call.await,
        })
    }

    /// Reads a body, whose bytes count in the budget until the call is answered.
    async fn body(
        &self,
        request: Request<Incoming>,
        largest: usize,
    ) -> Result<(Bytes, HeldBytes), CallError> {
        let announced =
            request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let announced: usize = announced.unwrap_or(largest);
        if announced > largest {
            return Err(connect::too_large(largest));
        }
        let no_room = || call_error(UNAVAILABLE, "the server holds as many bytes as it may; try again later");
        let held = self.budget.hold(announced).ok_or_else(no_room)?;
        let mut body = request.into_body();
        let mut whole = Bytes::new();
        while let Some(frame) = body.frame().await {
            let gone = |_| call_error(crate::codes::INVALID_ARGUMENT, "the body is incomplete");
            let Ok(piece) = frame.map_err(gone)?.into_data() else { continue };
            if whole.len() + piece.len() > largest {
                return Err(connect::too_large(largest));
            }
            whole = if whole.is_empty() {
                piece
            } else {
                let mut joined = BytesMut::from(whole);
                joined.extend_from_slice(&piece);
                joined.freeze()
            };
        }
        Ok((whole, held))
    }
}

/// Returns the answer to a request that HTTP does not allow, apart from those that hyper refuses itself.
fn malformed(request: &Request<Incoming>) -> Option<HttpAnswer> {
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
