//! Unary calls whose message has arrived with their headers: nearly all of them. They are decided at once, without the
//! router, and without layers around bodies of one frame.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Frame;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{HeaderValue, Response, header};
use weir_grpc::{Reply, reply, take_whole};

use super::open_calls::OpenCall;
use crate::server::body_layer::{BodyLayer, PolledFrame};

/// Takes the message of a body, if it is the only one and has arrived. Otherwise returns the body, as it was.
pub(super) fn message_of(mut body: Body, largest: usize) -> Result<Bytes, Body> {
    // Nobody is woken: a body that is not ready is polled again.
    let context = &mut Context::from_waker(Waker::noop());
    let Poll::Ready(first) = http_body::Body::poll_frame(Pin::new(&mut body), context) else {
        return Err(body);
    };
    let first = match first.map(|frame| frame.map(Frame::into_data)) {
        Some(Ok(Ok(mut data))) => {
            if http_body::Body::is_end_stream(&body)
                && let Some(message) = take_whole(&mut data, largest)
            {
                return Ok(message);
            }
            Some(Ok(Frame::data(data)))
        }
        Some(Ok(Err(trailers))) => Some(Ok(trailers)),
        Some(Err(status)) => Some(Err(status)),
        None => None,
    };
    Err(BegunBody(Some(first)).around(body))
}

/// Begins a body with what was polled of it.
struct BegunBody(Option<Option<Result<Frame<Bytes>, Status>>>);

impl BodyLayer for BegunBody {
    fn poll_frame(&mut self, body: Pin<&mut Body>, context: &mut Context<'_>) -> PolledFrame {
        match self.0.take() {
            Some(first) => Poll::Ready(first),
            None => http_body::Body::poll_frame(body, context),
        }
    }

    fn is_end_stream(&self, body: &Body) -> bool {
        self.0.is_none() && http_body::Body::is_end_stream(body)
    }
}

pub(super) fn response(answered: Result<Reply, Status>, call: OpenCall) -> Response<Body> {
    let message = match answered {
        Ok(Reply::Message(message)) => message,
        Ok(Reply::Messages(_) | Reply::Other(_)) => {
            return Status::internal("the reply is not one message").into_http();
        }
        Err(status) => return status.into_http(),
    };
    let mut response =
        Response::new(Body::new(OneMessage { message: Some(message), is_over: false, _call: call }));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// A message, and the status of a call that has not failed.
struct OneMessage {
    message: Option<Bytes>,
    is_over: bool,
    _call: OpenCall,
}

impl http_body::Body for OneMessage {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> PolledFrame {
        if let Some(message) = self.message.take() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        let is_over = std::mem::replace(&mut self.is_over, true);
        Poll::Ready((!is_over).then(|| Ok(Frame::trailers(reply::ok()))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use weir_grpc::RequestBody;

    fn rest(body: Body) -> Vec<u8> {
        let (mut body, mut bytes) = (body, Vec::new());
        let context = &mut Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(frame)) = http_body::Body::poll_frame(Pin::new(&mut body), context) {
            bytes.extend(frame.unwrap().into_data().unwrap());
        }
        assert!(http_body::Body::is_end_stream(&body));
        bytes
    }

    #[test]
    fn only_a_message_that_has_arrived_whole_is_taken() {
        let framed: &[u8] = &[0, 0, 0, 0, 3, 1, 2, 3];
        let body = |pieces: &[&[u8]]| {
            let pieces: VecDeque<_> = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
            Body::new(RequestBody::in_pieces(pieces))
        };
        assert_eq!(message_of(body(&[framed]), 3).unwrap(), [1, 2, 3][..]);
        let two = [framed, framed].concat();
        let compressed = [&[1], &framed[1..]].concat();
        for pieces in [
            &[&framed[..6], &framed[6..]][..],
            &[&two],
            &[&compressed],
            &[&framed[..7]],
            &[framed, framed],
            &[],
        ] {
            assert_eq!(rest(message_of(body(pieces), 3).unwrap_err()), pieces.concat());
        }
        assert_eq!(rest(message_of(body(&[framed]), 2).unwrap_err()), framed);
    }
}
