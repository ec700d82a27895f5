//! The messages of a call, as gRPC frames them: a flag, a length, and so many bytes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream::Stream;
use http_body::Body as _;
use tonic::Status;

use crate::body::RequestBody;

/// The flag and the length before every message.
pub const PREFIX: usize = 5;

/// The messages of a call. A message that arrives in one piece is not copied.
pub struct Messages {
    body: RequestBody,
    /// Bytes that have arrived and are not parsed yet.
    chunk: Bytes,
    /// The beginning of a message that arrives in pieces.
    partial: BytesMut,
    /// The first message of a call that has one, while its end is awaited.
    only: Option<Bytes>,
    /// The most bytes that a message may have.
    largest: usize,
    /// Where they come from instead, without their prefixes.
    decoded: Option<Decoded>,
}

/// The messages of a call as another server has read them.
type Decoded = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

impl Messages {
    /// The messages of a body, of at most `largest` bytes each.
    #[must_use]
    pub fn of(body: RequestBody, largest: usize) -> Self {
        Self { body, chunk: Bytes::new(), partial: BytesMut::new(), only: None, largest, decoded: None }
    }

    /// The only message of a call, as another server has read it, of at most `largest` bytes.
    pub fn one(message: Bytes, largest: usize) -> Result<Self, Status> {
        check_size(message.len(), largest)?;
        let mut messages = Self::of(RequestBody::whole(Bytes::new()), largest);
        messages.only = Some(message);
        Ok(messages)
    }

    /// The messages of a streaming call, as another server has read them, of at most `largest` bytes each.
    pub fn decoded(
        messages: impl Stream<Item = Result<Bytes, Status>> + Send + 'static,
        largest: usize,
    ) -> Self {
        let decoded: Option<Decoded> = Some(Box::pin(messages));
        Self { decoded, ..Self::of(RequestBody::whole(Bytes::new()), largest) }
    }

    /// The next message; `None` at the end of the body.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        if let Some(decoded) = &mut self.decoded {
            let next = ready!(decoded.as_mut().poll_next(context));
            let checked = |message: Bytes| check_size(message.len(), self.largest).map(|()| message);
            return Poll::Ready(next.map(|message| message.and_then(checked)));
        }
        loop {
            if let Some(message) = self.next_arrived().transpose() {
                return Poll::Ready(Some(message));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                // Trailers are metadata, of which none means anything here.
                Some(Ok(frame)) => self.chunk = frame.into_data().unwrap_or_default(),
                Some(Err(_)) => return Poll::Ready(Some(Err(Status::cancelled("the caller went away")))),
                None if self.partial.is_empty() => return Poll::Ready(None),
                None => return Poll::Ready(Some(Err(Status::internal("the call ended within a message")))),
            }
        }
    }

    /// The message of a call that has exactly one, once the body has ended. It may be asked again after it was
    /// not ready.
    pub fn only(&mut self) -> impl Future<Output = Result<Bytes, Status>> {
        poll_fn(|context| self.poll_only(context))
    }

    fn poll_only(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Status>> {
        let not = |count| Status::unimplemented(format!("this method takes one message, not {count}"));
        while self.only.is_none() || !self.is_at_end() {
            match ready!(self.poll_next(context)).transpose()? {
                Some(_) if self.only.is_some() => return Poll::Ready(Err(not("more"))),
                Some(message) => self.only = Some(message),
                None => break,
            }
        }
        Poll::Ready(self.only.take().ok_or_else(|| not("none")))
    }

    fn is_at_end(&self) -> bool {
        self.chunk.is_empty() && self.partial.is_empty() && self.body.is_end_stream()
    }

    /// The next message of those whose last byte is here.
    fn next_arrived(&mut self) -> Result<Option<Bytes>, Status> {
        if self.partial.is_empty() {
            if let Some(whole) = self.whole(&self.chunk)?.filter(|&whole| whole <= self.chunk.len()) {
                // What is the chunk's end needs no share in it.
                let is_last = whole == self.chunk.len();
                let mut message =
                    if is_last { std::mem::take(&mut self.chunk) } else { self.chunk.split_to(whole) };
                message.advance(PREFIX);
                return Ok(Some(message));
            }
            self.partial.extend_from_slice(&std::mem::take(&mut self.chunk));
            return Ok(None);
        }
        // First what is missing of the prefix, then what is missing of the message it announces.
        for _ in 0..2 {
            let whole = self.whole(&self.partial)?.unwrap_or(PREFIX);
            let missing = (whole - self.partial.len()).min(self.chunk.len());
            self.partial.extend_from_slice(&self.chunk.split_to(missing));
        }
        match self.whole(&self.partial)? {
            Some(whole) if whole == self.partial.len() => {
                Ok(Some(std::mem::take(&mut self.partial).freeze().split_off(PREFIX)))
            }
            _ => Ok(None),
        }
    }

    /// How many bytes the message at the beginning of `bytes` has with its prefix, if that is there.
    fn whole(&self, bytes: &[u8]) -> Result<Option<usize>, Status> {
        let Some((&[flag, length @ ..], _)) = bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
        match (flag, u32::from_be_bytes(length) as usize) {
            (0, length) => check_size(length, self.largest).map(|()| Some(PREFIX + length)),
            (1, _) => Err(Status::internal("the message is compressed, but no grpc-encoding was named")),
            (flag, _) => Err(Status::internal(format!("{flag} is no flag of a message: it must be 0 or 1"))),
        }
    }
}

/// Refuses a message of more than `largest` bytes.
#[inline]
pub fn check_size(length: usize, largest: usize) -> Result<(), Status> {
    if length <= largest {
        return Ok(());
    }
    Err(Status::out_of_range(format!("the message has {length} bytes; at most {largest} may be sent")))
}
