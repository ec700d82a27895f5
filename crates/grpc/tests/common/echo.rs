//! A service that answers with what it was sent: what a conversation shows then is the transport's own work.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use tokio::sync::watch;
use tonic::Status;
use weir_grpc::{
    BegunCall, Call, CallContext, HotMethod, HotService, IncomingCall, Messages, MethodId, Methods,
    PendingCall, Reply, RequestBody, Unanswered, reply,
};
use weir_time::clock::monotonic;
use weir_time::deadlines::Deadlines;

/// Echoes its message at once. A message that begins with `wait` must be waited for; `fail` is refused, and said back.
pub(crate) const UNARY: &str = "/echo.Echo/Unary";
/// Echoes its message after another turn of the runtime.
pub(crate) const SLOW: &str = "/echo.Echo/Slow";
/// Echoes every message of a stream when it comes.
pub(crate) const STREAM: &str = "/echo.Echo/Stream";
/// Is never answered before its deadline.
pub(crate) const HELD: &str = "/echo.Echo/Held";
/// Says how many nanoseconds remain to its deadline, or `none`.
pub(crate) const DEADLINE: &str = "/echo.Echo/Deadline";
/// Answers with as many bytes as its message, a decimal number, says.
pub(crate) const LARGE: &str = "/echo.Echo/Large";
/// Is never answered, and reads nothing of what it is sent.
pub(crate) const UNREAD: &str = "/echo.Echo/Unread";

/// A method of the general router, which echoes the whole body.
pub(crate) const OTHER: &str = "/echo.Other/Echo";

/// The largest message of a hot method, and of any other.
pub(crate) const LARGEST: usize = 1 << 20;
pub(crate) const LARGEST_OTHER: usize = 64 << 10;

/// The service.
pub(crate) struct Echo {
    methods: Methods,
    deadlines: Deadlines,
    /// Shared with every call that is waited for.
    live: Arc<()>,
}

impl Default for Echo {
    fn default() -> Self {
        let hot = [UNARY, SLOW, STREAM, HELD, DEADLINE, LARGE, UNREAD].map(|path| HotMethod {
            path,
            largest_message: LARGEST,
            together: path == UNARY,
            streaming: [STREAM, HELD].contains(&path),
        });
        Self {
            methods: Methods::new(hot.into(), LARGEST_OTHER),
            deadlines: Deadlines::default(),
            live: Arc::default(),
        }
    }
}

impl Echo {
    fn waiting(
        &self,
        context: &CallContext,
        answer: impl Future<Output = Result<Reply, Status>> + Send + 'static,
    ) -> Call {
        let live = Arc::clone(&self.live);
        Call::waiting(&self.deadlines, context.deadline, async move {
            let answer = answer.await;
            drop(live);
            answer
        })
    }

    /// Calls that are waited for, and streaming answers that go on.
    pub(crate) fn live_calls(&self) -> usize {
        Arc::strong_count(&self.live) - 1
    }
}

impl HotService for Echo {
    fn methods(&self) -> &Methods {
        &self.methods
    }

    fn begin(&self, MethodId(method): MethodId, call: IncomingCall, _: &watch::Receiver<()>) -> BegunCall {
        let IncomingCall { context, mut messages } = call;
        BegunCall::Call(match method {
            0 => {
                let arrived = std::pin::pin!(messages.only()).poll(&mut Context::from_waker(Waker::noop()));
                match arrived {
                    Poll::Ready(Ok(message)) => return BegunCall::Pending(PendingCall { message, context }),
                    Poll::Ready(Err(status)) => Call::failed(status),
                    Poll::Pending => self.waiting(&context, async move { echo(&messages.only().await?) }),
                }
            }
            1 => self.waiting(&context, async move {
                let message = messages.only().await?;
                tokio::task::yield_now().await;
                echo(&message)
            }),
            2 => Call::done(Ok(Reply::Messages(Box::pin(EchoStream {
                messages,
                ended: false,
                _live: Arc::clone(&self.live),
            })))),
            3 => self.waiting(&context, async move {
                messages.only().await?;
                std::future::pending().await
            }),
            4 => self.waiting(&context, async move {
                messages.only().await?;
                let remaining =
                    context.deadline.map(|at| at.saturating_duration_since(monotonic()).as_nanos());
                let text = remaining.map_or_else(|| "none".to_owned(), |nanos| nanos.to_string());
                Ok(Reply::message(text.len(), |out| out.extend_from_slice(text.as_bytes())))
            }),
            5 => self.waiting(&context, async move {
                let message = messages.only().await?;
                let bytes = std::str::from_utf8(&message).ok().and_then(|text| text.parse::<usize>().ok());
                let bytes = bytes.ok_or_else(|| Status::invalid_argument("it is no number"))?;
                Ok(Reply::message(bytes, |out| out.resize(out.len() + bytes.min(LARGEST), 7)))
            }),
            6 => self.waiting(&context, async move {
                std::future::pending::<()>().await;
                drop(messages);
                echo(&[])
            }),
            _ => Call::failed(Status::unimplemented("there is no such method")),
        })
    }

    fn answer_each(
        &self,
        pending: &[PendingCall],
        mut each: impl FnMut(usize, Result<&[u8], Status>),
    ) -> Unanswered {
        let mut unanswered = Unanswered::new();
        let mut buffer = Vec::new();
        for (place, call) in pending.iter().enumerate() {
            if call.message.starts_with(b"wait") {
                let message = call.message.clone();
                let answer = self.waiting(&call.context, async move {
                    tokio::task::yield_now().await;
                    echo(&message)
                });
                unanswered.push((place, answer));
            } else if call.message.starts_with(b"fail") {
                let text = String::from_utf8_lossy(&call.message);
                each(place, Err(Status::invalid_argument(format!("it was asked to {text}"))));
            } else {
                buffer.clear();
                reply::frame(&mut buffer, |out| out.extend_from_slice(&call.message));
                each(place, Ok(&buffer));
            }
        }
        unanswered
    }

    fn other(&self, context: CallContext, request: http::Request<RequestBody>) -> Call {
        if request.uri().path() != OTHER {
            return Call::failed(Status::unimplemented("there is no such method"));
        }
        self.waiting(&context, async move {
            let body = collect(request.into_body()).await?;
            let body = tonic::body::Body::new(
                Full::new(body).with_trailers(async { Some(Ok::<_, Infallible>(reply::ok())) }),
            );
            let mut response = http::Response::new(body);
            let grpc = http::HeaderValue::from_static("application/grpc");
            response.headers_mut().insert(http::header::CONTENT_TYPE, grpc);
            Ok(Reply::Other(Box::new(response)))
        })
    }
}

fn echo(message: &[u8]) -> Result<Reply, Status> {
    Ok(Reply::message(message.len(), |out| out.extend_from_slice(message)))
}

async fn collect(mut body: RequestBody) -> Result<Bytes, Status> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let data = frame.map_err(|gone| Status::cancelled(gone.to_string()))?.into_data().unwrap_or_default();
        all.extend_from_slice(&data);
        if all.len() > LARGEST_OTHER {
            return Err(Status::resource_exhausted("the body is too large"));
        }
    }
    Ok(all.freeze())
}

/// The answer of [`STREAM`].
struct EchoStream {
    messages: Messages,
    ended: bool,
    _live: Arc<()>,
}

impl Body for EchoStream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = std::task::ready!(self.messages.poll_next(context));
        Poll::Ready(Some(Ok(match next {
            Some(Ok(message)) => {
                Frame::data(reply::framed(message.len(), |out| out.extend_from_slice(&message)))
            }
            Some(Err(status)) => {
                self.ended = true;
                let mut trailers = http::HeaderMap::new();
                status.add_header(&mut trailers)?;
                Frame::trailers(trailers)
            }
            None => {
                self.ended = true;
                Frame::trailers(reply::ok())
            }
        })))
    }
}
