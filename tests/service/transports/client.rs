//! A client that sends calls as they are given, right or wrong, and says all that came back.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Version};
use tokio::io::{AsyncRead, AsyncWrite};

/// A call as it is sent.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) verb: Method,
    /// Besides the ordinary ones.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content_type: Option<HeaderValue>,
    /// The whole body: messages with their prefixes, if they are right.
    pub(crate) body: Vec<u8>,
    /// Bytes of one DATA frame.
    pub(crate) piece: usize,
    pub(crate) ends: Ends,
}

/// The end of a call on the side of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// END_STREAM with the last byte.
    WithBody,
    /// END_STREAM in trailers.
    WithTrailers,
    /// RST_STREAM after so many bytes of the body, of which the last is not one.
    Cancelled(usize),
    /// The client's side stays open: the answer is waited for.
    Never,
}

/// All that came back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) http_status: Option<StatusCode>,
    /// grpc-status.
    pub(crate) code: Option<u16>,
    /// grpc-message.
    pub(crate) message: Option<String>,
    /// All other headers and trailers.
    pub(crate) metadata: BTreeMap<String, String>,
    /// The body: messages with their prefixes.
    pub(crate) body: Vec<u8>,
    /// The reason of a reset, ours or theirs.
    pub(crate) reset: Option<Reason>,
}

pub(crate) struct Client {
    send: SendRequest<Bytes>,
}

impl fmt::Debug for Call {
    /// Long bodies by how they begin.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, verb, headers, content_type, body, piece, ends } = self;
        let (begin, length) = (&body[..body.len().min(100)], body.len());
        write!(f, "{verb} {path} {content_type:?} {headers:?} {length} bytes in {piece}, {ends:?}: {begin:?}")
    }
}

impl Call {
    pub(crate) fn new(path: &str, body: Vec<u8>) -> Self {
        Self {
            path: path.to_owned(),
            verb: Method::POST,
            headers: Vec::new(),
            content_type: Some(HeaderValue::from_static("application/grpc")),
            body,
            piece: usize::MAX,
            ends: Ends::WithBody,
        }
    }

    /// With one more header.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        self
    }
}

impl Client {
    pub(crate) async fn connect(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(async move {
            // How it ends is seen by the calls.
            let _ = connection.await;
        });
        Self { send }
    }

    pub(crate) async fn call(&mut self, call: &Call) -> Outcome {
        match self.begin(call).await {
            Ok(open) => open.outcome().await,
            Err(outcome) => outcome,
        }
    }

    /// Sends all of a call.
    pub(crate) async fn begin(&mut self, call: &Call) -> Result<Open, Outcome> {
        let mut request = Request::new(());
        *request.uri_mut() = format!("http://weir{}", call.path).parse().unwrap();
        *request.method_mut() = call.verb.clone();
        *request.version_mut() = Version::HTTP_2;
        let headers = request.headers_mut();
        headers.insert("te", HeaderValue::from_static("trailers"));
        if let Some(content_type) = &call.content_type {
            headers.insert("content-type", content_type.clone());
        }
        for (name, value) in &call.headers {
            headers.append(name, value.clone());
        }
        let mut send = self.send.clone().ready().await.map_err(|error| Outcome::of_error(&error))?;
        let (response, mut stream) =
            send.send_request(request, false).map_err(|error| Outcome::of_error(&error))?;
        // The server may end the call before it has read all of it.
        let _ = send_body(&mut stream, call);
        Ok(Open { response, stream, cancelled: matches!(call.ends, Ends::Cancelled(_)) })
    }
}

fn send_body(stream: &mut SendStream<Bytes>, call: &Call) -> Result<(), h2::Error> {
    let length = if let Ends::Cancelled(after) = call.ends { after } else { call.body.len() };
    let mut pieces = call.body[..length].chunks(call.piece.max(1)).peekable();
    let empty = pieces.peek().is_none();
    while let Some(piece) = pieces.next() {
        let is_last = pieces.peek().is_none() && call.ends == Ends::WithBody;
        stream.send_data(Bytes::copy_from_slice(piece), is_last)?;
    }
    match call.ends {
        Ends::WithBody if empty => stream.send_data(Bytes::new(), true),
        Ends::WithTrailers => {
            let checksum = (HeaderName::from_static("x-checksum"), HeaderValue::from_static("1"));
            stream.send_trailers(HeaderMap::from_iter([checksum]))
        }
        Ends::Cancelled(_) => {
            stream.send_reset(Reason::CANCEL);
            Ok(())
        }
        Ends::WithBody | Ends::Never => Ok(()),
    }
}

/// A call that has been sent.
pub(crate) struct Open {
    response: h2::client::ResponseFuture,
    /// Dropped, it would cancel a call whose end was not sent.
    stream: SendStream<Bytes>,
    cancelled: bool,
}

impl Open {
    /// Sends more of a body that has no end yet. A call that is over takes nothing more.
    pub(crate) fn send(&mut self, bytes: Vec<u8>) {
        let _ = self.stream.send_data(bytes.into(), false);
    }

    pub(crate) async fn outcome(self) -> Outcome {
        let Self { response, stream, cancelled } = self;
        if cancelled {
            return Outcome { reset: Some(Reason::CANCEL), ..Outcome::default() };
        }
        let mut outcome = Outcome::default();
        match response.await {
            Ok(response) => {
                outcome.http_status = Some(response.status());
                let (head, body) = response.into_parts();
                outcome.take(&head.headers);
                if let Err(error) = outcome.read(body).await {
                    outcome.reset = outcome.reset_of(&error);
                }
            }
            Err(error) => outcome = Outcome::of_error(&error),
        }
        drop(stream);
        outcome
    }
}

impl Outcome {
    fn of_error(error: &h2::Error) -> Self {
        Self { reset: Some(error.reason().unwrap_or(Reason::INTERNAL_ERROR)), ..Self::default() }
    }

    /// A server that has answered may stop the rest of the request (RFC 9113, 8.1): that is no fault.
    fn reset_of(&self, error: &h2::Error) -> Option<Reason> {
        let reason = error.reason().unwrap_or(Reason::INTERNAL_ERROR);
        (reason != Reason::NO_ERROR || self.code.is_none()).then_some(reason)
    }

    async fn read(&mut self, mut body: RecvStream) -> Result<(), h2::Error> {
        while let Some(data) = body.data().await {
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            self.body.extend_from_slice(&data);
        }
        if let Some(trailers) = body.trailers().await? {
            self.take(&trailers);
        }
        Ok(())
    }

    fn take(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            match name.as_str() {
                "grpc-status" => self.code = Some(text.parse().unwrap()),
                "grpc-message" => self.message = Some(text),
                // The time of day, and a length that HTTP has anyway.
                "date" | "content-length" => {}
                name => drop(self.metadata.insert(name.to_owned(), text)),
            }
        }
    }
}
