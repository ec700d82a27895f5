//! Adapter between tonic's traits and the functions of the services.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use futures_util::StreamExt as _;
use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::{Code, Request, Response, Status, Streaming};
use weir_grpc::{CallContext, IncomingCall, Messages, PREFIX, Reply, ResponseBody};

use weir_proto::Encoded;

/// Changes when the connection of a call is about to end. An extension of requests, for servers that have no other
/// signal.
#[derive(Debug, Clone)]
pub struct Closing(pub watch::Receiver<()>);

/// The context of a call: an extension of its request, on every transport.
pub fn context<T>(request: &mut Request<T>) -> CallContext {
    request.extensions_mut().remove().unwrap_or_default()
}

/// A call of one message, of at most `largest` bytes.
pub fn incoming<T>(mut request: Request<Encoded<T>>, largest: usize) -> Result<IncomingCall, Status> {
    let context = context(&mut request);
    Ok(IncomingCall { context, messages: Messages::one(request.into_inner().into_bytes(), largest)? })
}

/// A call of many messages, of at most `largest` bytes each, and the signal that its connection ends.
pub(super) fn incoming_stream<T: 'static>(
    mut request: Request<Streaming<Encoded<T>>>,
    largest: usize,
) -> Result<(IncomingCall, watch::Receiver<()>), Status> {
    let context = context(&mut request);
    let closing = request.extensions_mut().remove::<Closing>();
    let Closing(closing) = closing.ok_or_else(|| Status::internal("nothing says when the call must end"))?;
    let messages =
        request.into_inner().map(|message| message.map(Encoded::into_bytes).map_err(with_our_code));
    Ok((IncomingCall { context, messages: Messages::decoded(messages, largest) }, closing))
}

/// tonic's status for a message that is too large is OUT_OF_RANGE.
fn with_our_code(status: Status) -> Status {
    if status.code() == Code::OutOfRange { Status::resource_exhausted(status.message()) } else { status }
}

/// The reply of a method that answers with one message.
pub fn one_message<T>(reply: Reply) -> Result<Response<Encoded<T>>, Status> {
    match reply {
        Reply::Message(framed) => Ok(Response::new(unframed(framed))),
        Reply::Messages(_) | Reply::Other(_) => Err(Status::internal("the reply is not one message")),
    }
}

/// The reply of a method that answers with many messages.
pub(super) fn many_messages<T>(reply: Reply) -> Result<Response<ReplyStream<T>>, Status> {
    match reply {
        Reply::Messages(body) => Ok(Response::new(ReplyStream { body, message: std::marker::PhantomData })),
        Reply::Message(_) | Reply::Other(_) => Err(Status::internal("the reply is not a stream")),
    }
}

/// The messages of a streaming reply, and then its status.
pub struct ReplyStream<T> {
    body: ResponseBody,
    message: std::marker::PhantomData<fn() -> T>,
}

impl<T> Stream for ReplyStream<T> {
    type Item = Result<Encoded<T>, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let frame = match ready!(self.body.as_mut().poll_frame(context)) {
            Some(frame) => frame?,
            None => return Poll::Ready(None),
        };
        // Each frame of data is one message.
        Poll::Ready(match frame.into_data() {
            Ok(framed) => Some(Ok(unframed(framed))),
            Err(trailers) => {
                let status = trailers.trailers_ref().and_then(Status::from_header_map);
                status.filter(|status| status.code() != Code::Ok).map(Err)
            }
        })
    }
}

fn unframed<T>(mut framed: Bytes) -> Encoded<T> {
    framed.advance(PREFIX.min(framed.len()));
    Encoded::new(framed)
}
