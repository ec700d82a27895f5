//! One call over gRPC: its question is read, and what the script says is written.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as STANDARD_NO_PAD;
use bytes::{BufMut as _, Bytes, BytesMut};
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::sync::Notify;

use crate::messages::ScriptedForm;
use crate::script::{AnswerScript, AskedQuestion, ScriptedOutcome};

/// The bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// Longer questions are cut off, which the log shows.
const LONGEST: usize = 4 << 20;

/// Answers a call. `lost` cuts its connection.
pub(crate) async fn answer(
    request: Request<RecvStream>,
    mut response: SendResponse<Bytes>,
    connection: u64,
    script: Arc<AnswerScript>,
    lost: Arc<Notify>,
) {
    let (parts, body) = request.into_parts();
    let Some(message) = read(body).await else { return };
    let path = parts.uri.path();
    let metadata = metadata(&parts.headers);
    let question = AskedQuestion { path, bytes: &message, form: ScriptedForm::Proto, metadata, connection };
    let (delay, outcome) = script.ask(&question);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    match outcome {
        ScriptedOutcome::Message(message) => send(&mut response, &message),
        ScriptedOutcome::Status(code, text, details) => end(&mut response, status(code, &text, &details)),
        ScriptedOutcome::Page(..) => end(&mut response, status(13, "this rule is for HTTP", &[])),
        ScriptedOutcome::Lose => lost.notify_one(),
        ScriptedOutcome::Unread => response.send_reset(h2::Reason::REFUSED_STREAM),
        ScriptedOutcome::Silent => {
            // Until the caller gives up.
            drop(std::future::poll_fn(|context| response.poll_reset(context)).await);
        }
    }
}

/// Reads the only message of a call, or nothing if the caller goes away first.
async fn read(mut body: RecvStream) -> Option<Bytes> {
    let mut all = BytesMut::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.ok()?;
        drop(body.flow_control().release_capacity(chunk.len()));
        if all.len() < LONGEST {
            all.extend_from_slice(&chunk);
        }
    }
    (all.len() >= PREFIX).then(|| all.split_off(PREFIX).freeze())
}

/// Names and values, as the log has them.
pub(crate) fn metadata(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

// What cannot be written any more has no reader: a failure to write is none of the script.

fn send(response: &mut SendResponse<Bytes>, message: &[u8]) {
    let Ok(mut stream) = response.send_response(with(HeaderMap::new()), false) else { return };
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.extend_from_slice(message);
    drop(stream.send_data(framed.freeze(), false));
    drop(stream.send_trailers(status(0, "", &[])));
}

fn end(response: &mut SendResponse<Bytes>, status: HeaderMap) {
    drop(response.send_response(with(status), true));
}

fn with(headers: HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.headers_mut() = headers;
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

fn status(code: u64, text: &str, details: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("grpc-status", code.into());
    if let Ok(text) = HeaderValue::from_str(&percent_encoded(text))
        && !text.is_empty()
    {
        headers.insert("grpc-message", text);
    }
    if let Ok(details) = HeaderValue::from_str(&STANDARD_NO_PAD.encode(details))
        && !details.is_empty()
    {
        headers.insert("grpc-status-details-bin", details);
    }
    headers
}

/// A text as `grpc-message` has it.
fn percent_encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b' '..=b'~' if byte != b'%' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}
