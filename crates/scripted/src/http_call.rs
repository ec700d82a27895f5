//! One call over HTTP: JSON by Connect's unary protocol, or what the script says instead of it.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prost::Message as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::call::metadata;
use crate::messages::ScriptedForm;
use crate::script::{AnswerScript, AskedQuestion, ScriptedOutcome};

/// The names of the codes in Connect, and their statuses, from 1 on.
const CODES: [(&str, u16); 16] = [
    ("canceled", 499),
    ("unknown", 500),
    ("invalid_argument", 400),
    ("deadline_exceeded", 504),
    ("not_found", 404),
    ("already_exists", 409),
    ("permission_denied", 403),
    ("resource_exhausted", 429),
    ("failed_precondition", 400),
    ("aborted", 409),
    ("out_of_range", 400),
    ("unimplemented", 501),
    ("internal", 500),
    ("unavailable", 503),
    ("data_loss", 500),
    ("unauthenticated", 401),
];

type ScriptedAnswer = Response<Full<Bytes>>;

/// Serves a connection. An error ends it: nobody is left to be told.
pub(crate) async fn connection(stream: TcpStream, number: u64, script: Arc<AnswerScript>) {
    let service = service_fn(|request| answer(request, number, Arc::clone(&script)));
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

/// Answers a call. An error cuts the connection.
async fn answer(
    request: Request<Incoming>,
    connection: u64,
    script: Arc<AnswerScript>,
) -> io::Result<ScriptedAnswer> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let question = AskedQuestion {
        path: parts.uri.path(),
        bytes: &body,
        form: ScriptedForm::Json,
        metadata: metadata(&parts.headers),
        connection,
    };
    let (delay, outcome) = script.ask(&question);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    match outcome {
        ScriptedOutcome::Message(json) => Ok(with(200, "application/json", json)),
        ScriptedOutcome::Status(code, text, details) => Ok(error(code, &text, &details)),
        ScriptedOutcome::Page(status, text, location) => {
            let mut page = with(status, "text/html", text.into());
            if let Some(location) = location {
                page.headers_mut()
                    .insert(LOCATION, HeaderValue::try_from(location).map_err(io::Error::other)?);
            }
            Ok(page)
        }
        ScriptedOutcome::Lose | ScriptedOutcome::Unread => {
            Err(io::Error::other("the script cuts the connection"))
        }
        // Until the caller gives up.
        ScriptedOutcome::Silent => std::future::pending().await,
    }
}

fn with(status: u16, content_type: &'static str, body: Bytes) -> ScriptedAnswer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

fn error(code: u64, text: &str, details: &[u8]) -> ScriptedAnswer {
    let index = usize::try_from(code).unwrap_or_default().saturating_sub(1);
    let (name, status) = CODES.get(index).copied().unwrap_or(CODES[1]);
    let mut body = json!({ "code": name, "message": text });
    let details: Vec<Value> =
        ScriptedStatus::decode(details).unwrap_or_default().details.iter().map(detail).collect();
    if !details.is_empty() {
        body["details"] = Value::Array(details);
    }
    with(status, "application/json", body.to_string().into())
}

fn detail(ScriptedDetail { type_url, value }: &ScriptedDetail) -> Value {
    let name = type_url.rsplit('/').next().unwrap_or_default();
    json!({ "type": name, "value": STANDARD_NO_PAD.encode(value) })
}

/// The part of `google.rpc.Status` that Connect writes in another form.
#[derive(Clone, PartialEq, prost::Message)]
struct ScriptedStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<ScriptedDetail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
struct ScriptedDetail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}
