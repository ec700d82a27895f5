//! gRPC without generated types: messages as bytes, calls without a connection.

use bytes::{Buf as _, BufMut as _, Bytes};
use std::sync::Arc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Status};
use weir_grpc::{BegunCall, CallContext, IncomingCall, Messages, PendingCall, Reply, RequestBody};
use weir_node::service::DecisionService;
use weir_store::Store;

/// The largest message that these calls may have.
const LARGEST_MESSAGE: usize = 64 << 10;

/// A message as gRPC frames it.
pub(crate) fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    [&[flag], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat()
}

/// A call whose body arrives so many bytes at a time.
pub(crate) fn request(bytes: &[u8], piece: usize) -> IncomingCall {
    request_within(bytes, piece, LARGEST_MESSAGE)
}

/// The same, where a message may have so many bytes.
pub(crate) fn request_within(bytes: &[u8], piece: usize, largest: usize) -> IncomingCall {
    let pieces = bytes.chunks(piece.max(1)).map(Bytes::copy_from_slice).collect();
    let messages = Messages::new(RequestBody::in_pieces(pieces), largest);
    IncomingCall { context: CallContext::default(), messages }
}

/// Returns the end of a call with one question, answered alone.
pub(crate) async fn ended_alone<S: Store>(
    service: &Arc<DecisionService<S>>,
    begun: BegunCall,
) -> Result<Vec<u8>, Code> {
    match begun {
        BegunCall::Call(call) => ended(call).await,
        BegunCall::Pending(pending) => together(service, &[pending]).remove(0),
    }
}

/// Returns the answers to questions that arrived together.
pub(crate) fn together<S: Store>(
    service: &Arc<DecisionService<S>>,
    pending: &[PendingCall],
) -> Vec<Result<Vec<u8>, Code>> {
    let mut answers: Vec<_> = pending.iter().map(|_| None).collect();
    service.answer_each(pending, |number, answer| {
        let answer = answer.map(<[u8]>::to_vec).map_err(|status| status.code());
        assert!(answers[number].replace(answer).is_none(), "question {number} has two answers");
    });
    answers.into_iter().map(|answer| answer.expect("every question has an answer")).collect()
}

/// Returns the end of a call: the messages of the answer, or the status.
pub(crate) async fn ended(begun: impl Into<BegunCall>) -> Result<Vec<u8>, Code> {
    let BegunCall::Call(call) = begun.into() else { panic!("it is answered by itself, in this turn") };
    let mut body = match call.await.map_err(|status| status.code())? {
        Reply::Message(message) => return Ok(message.to_vec()),
        Reply::Messages(body) => body,
        Reply::Other(_) => panic!("tonic answers none of these calls"),
    };
    let status =
        |headers: &http::HeaderMap| headers.get("grpc-status").map(|code| Code::from_bytes(code.as_bytes()));
    let mut bytes = Vec::new();
    loop {
        let frame = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await;
        match frame.expect("trailers come before the end").unwrap().into_data() {
            Ok(data) => bytes.extend_from_slice(&data),
            Err(trailers) => {
                let code = status(trailers.trailers_ref().unwrap()).unwrap();
                return if code == Code::Ok { Ok(bytes) } else { Err(code) };
            }
        }
    }
}

/// The bytes that these digits stand for.
pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// A codec of messages that are bytes, whatever they mean.
#[derive(Clone, Copy)]
pub(crate) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
