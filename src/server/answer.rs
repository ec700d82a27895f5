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
use tonic::Status;

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
    let (head, reply) = response.into_parts();
    let nothing_follows = reply.is_end_stream();
    let Some(stream) = begin(respond, http::Response::from_parts(head, ()), nothing_follows) else { return };
    match reply.whole() {
        Ok(whole) => finish(stream, whole),
        Err(_) if nothing_follows => {}
        Err(reply) => {
            tokio::spawn(pour(reply, stream));
        }
    }
}

/// Sends an answer of one message, or why there is none.
pub(super) fn answer_whole(respond: &mut SendResponse<Bytes>, answered: Result<Whole, Status>) {
    match answered {
        Ok(whole) => {
            if let Some(stream) = begin(respond, Whole::head(), false) {
                finish(stream, whole);
            }
        }
        Err(status) => answer(respond, status.into_http()),
    }
}

/// Sends the response's head. What cannot be sent is of a caller who has gone.
fn begin(
    respond: &mut SendResponse<Bytes>,
    head: http::Response<()>,
    nothing_follows: bool,
) -> Option<SendStream<Bytes>> {
    let sent = respond.send_response(head, nothing_follows);
    sent.inspect_err(|error| tracing::debug!(%error, "a call could not be answered")).ok()
}

/// It is in memory anyway: h2 keeps what the caller has no room for yet, and the trailers behind it.
fn finish(mut stream: SendStream<Bytes>, whole: Whole) {
    let _ = stream.send_data(whole.0, false).and_then(|()| stream.send_trailers(Whole::trailers()));
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
