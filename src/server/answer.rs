//! How a call is answered on its stream: whole, where the answer is one message; else piece by piece, by a
//! task.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http_body::Body as _;

use crate::service::{Call, Reply, Whole};

/// A call that has to wait, with the stream that it is to be answered on. It ends when it has been answered,
/// or when nobody is there any more who could be.
pub(super) struct Waiting {
    call: Call,
    respond: SendResponse<Bytes>,
}

impl Waiting {
    pub(super) fn new(call: Call, respond: SendResponse<Bytes>) -> Self {
        Self { call, respond }
    }
}

impl Future for Waiting {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { call, respond } = &mut *self;
        // As in a task, a panic is the end of one call, and a log line that the hook has written.
        match catch_unwind(AssertUnwindSafe(|| Pin::new(call).poll(context))) {
            Ok(Poll::Ready(Ok(response))) => {
                answer(respond, response);
                Poll::Ready(())
            }
            Ok(Poll::Pending) => respond.poll_reset(context).map(|_| ()),
            Err(_) => {
                respond.send_reset(Reason::INTERNAL_ERROR);
                Poll::Ready(())
            }
        }
    }
}

/// Sends a response, or has a task send it where it comes in pieces.
pub(super) fn answer(respond: &mut SendResponse<Bytes>, response: http::Response<Reply>) {
    if let Some((reply, stream)) = start(respond, response) {
        tokio::spawn(pour(reply, stream));
    }
}

/// Sends the response's head, and all of it where it is whole. What cannot be sent is of a caller who has
/// gone.
fn start(
    respond: &mut SendResponse<Bytes>,
    response: http::Response<Reply>,
) -> Option<(Reply, SendStream<Bytes>)> {
    let (head, reply) = response.into_parts();
    let nothing_follows = reply.is_end_stream();
    let stream = respond.send_response(http::Response::from_parts(head, ()), nothing_follows);
    let mut stream = match stream {
        Ok(stream) if !nothing_follows => stream,
        Ok(_) => return None,
        Err(error) => {
            tracing::debug!(%error, "a call could not be answered");
            return None;
        }
    };
    match reply.whole() {
        // It is in memory anyway: h2 keeps what the caller has no room for yet, and the trailers behind it.
        Ok(Whole { message, trailers }) => {
            let _ = stream.send_data(message, false).and_then(|()| stream.send_trailers(trailers));
            None
        }
        Err(reply) => Some((reply, stream)),
    }
}

/// Sends frame by frame what comes, and no faster than the caller takes it.
async fn pour(mut reply: Reply, mut stream: SendStream<Bytes>) {
    let mut held = None;
    let ended = poll_fn(|context| {
        // A caller who has gone is noticed also while there is nothing to send.
        if stream.poll_reset(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        poll_pour(&mut reply, &mut held, &mut stream, context)
    });
    if let Err(reason) = ended.await {
        stream.send_reset(reason);
    }
}

/// `held` is what the caller has no room for yet.
fn poll_pour(
    reply: &mut Reply,
    held: &mut Option<Bytes>,
    stream: &mut SendStream<Bytes>,
    context: &mut Context<'_>,
) -> Poll<Result<(), Reason>> {
    loop {
        if held.as_ref().is_some_and(|data| !data.is_empty()) {
            while stream.capacity() == 0 {
                match ready!(stream.poll_capacity(context)) {
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Poll::Ready(Ok(())),
                }
            }
        }
        if let Some(data) = held.take() {
            let last = reply.is_end_stream();
            sent(stream.send_data(data, last))?;
            if last {
                return Poll::Ready(Ok(()));
            }
        }
        let frame = match ready!(Pin::new(&mut *reply).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(_)) => return Poll::Ready(Err(Reason::INTERNAL_ERROR)),
            None => return Poll::Ready(sent(stream.send_data(Bytes::new(), true))),
        };
        match frame.into_data() {
            Ok(data) => {
                // Room for something, not for all: what is reserved is kept from other streams of the
                // connection, and so is reserved only with the data at hand.
                stream.reserve_capacity(1);
                *held = Some(data);
            }
            Err(frame) => {
                let Ok(trailers) = frame.into_trailers() else { continue };
                stream.reserve_capacity(0);
                return Poll::Ready(sent(stream.send_trailers(trailers)));
            }
        }
    }
}

/// What cannot be sent ends its stream.
fn sent(result: Result<(), h2::Error>) -> Result<(), Reason> {
    result.map_err(|_| Reason::INTERNAL_ERROR)
}
