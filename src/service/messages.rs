//! The messages of a call as gRPC frames them: a flag, a length, and so many bytes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use http_body::Body;
use tonic::Status;

/// The flag and the length before every message.
pub(super) const PREFIX: usize = 5;

/// What a caller sends, message by message. A message that arrives in one piece is not copied.
pub(super) struct Messages<B> {
    body: B,
    /// What has arrived and is not looked at yet.
    chunk: Bytes,
    /// The beginning of a message that arrives in pieces.
    partial: BytesMut,
    /// The first message of a call that has one, while its end is awaited.
    only: Option<Bytes>,
    /// The most bytes that a message may have.
    largest: usize,
}

impl<B: Body<Data = Bytes> + Unpin> Messages<B> {
    pub(super) fn of(body: B, largest: usize) -> Self {
        Self { body, chunk: Bytes::new(), partial: BytesMut::new(), only: None, largest }
    }

    /// The next message; `None` when the caller has said that there is no further one.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
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

    /// The message of a call that has one: when its end has come, so that a second one is noticed. Who has only
    /// looked whether it is there may ask again.
    pub(super) fn only(&mut self) -> impl Future<Output = Result<Bytes, Status>> {
        poll_fn(|context| self.poll_only(context))
    }

    /// Whether that message has more than `bytes`, as soon as it has said so. Where something is amiss it has
    /// not: [`Messages::only`] tells what.
    pub(super) fn is_longer(&mut self, bytes: usize) -> impl Future<Output = bool> {
        poll_fn(move |context| self.poll_is_longer(bytes, context))
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

    fn poll_is_longer(&mut self, bytes: usize, context: &mut Context<'_>) -> Poll<bool> {
        while self.only.is_none() {
            let arrived = if self.partial.is_empty() { &self.chunk } else { &self.partial[..] };
            match self.whole(arrived) {
                Ok(Some(whole)) => return Poll::Ready(whole > PREFIX + bytes),
                Ok(None) => self.partial.extend_from_slice(&std::mem::take(&mut self.chunk)),
                Err(_) => break,
            }
            let Some(Ok(frame)) = ready!(Pin::new(&mut self.body).poll_frame(context)) else { break };
            self.chunk = frame.into_data().unwrap_or_default();
            let missing = PREFIX.saturating_sub(self.partial.len()).min(self.chunk.len());
            if !self.partial.is_empty() {
                self.partial.extend_from_slice(&self.chunk.split_to(missing));
            }
        }
        Poll::Ready(false)
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
            (0, length) if length <= self.largest => Ok(Some(PREFIX + length)),
            (0, length) => Err(Status::out_of_range(format!(
                "the message has {length} bytes; at most {} may be sent",
                self.largest
            ))),
            (1, _) => Err(Status::internal("the message is compressed, but no grpc-encoding was named")),
            (flag, _) => Err(Status::internal(format!("{flag} is no flag of a message: it must be 0 or 1"))),
        }
    }
}
