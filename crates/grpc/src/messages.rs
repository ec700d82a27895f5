//! The messages of a call in gRPC's framing: a flag, a length, and the bytes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream::Stream;
use http_body::Body as _;
use tonic::Status;

use crate::body::{BodyFault, RequestBody};
use crate::framing::{PREFIX, check_size, take_whole};

/// Length up to which the buffer of an incomplete message grows by doubling: the announced length may never come.
const SMALL: usize = 8 << 10;

/// The messages of a call. A message that arrives in one piece is not copied.
pub struct Messages {
    body: RequestBody,
    /// Bytes that have arrived and are not parsed yet.
    chunk: Bytes,
    /// A message that arrives in pieces: its prefix so far, its announced length, and its bytes so far. These are
    /// kept without the prefix: a length of a power of two is a size class of the allocator.
    prefix: [u8; PREFIX],
    prefix_length: usize,
    announced: Option<usize>,
    partial: BytesMut,
    /// The first message of a unary call, until the end of its body arrives.
    only: Option<Bytes>,
    /// The largest allowed message, in bytes.
    largest: usize,
    /// True if a message counts as unread until it is dropped.
    held: bool,
    /// Source of messages that another server has decoded, used instead of `body`.
    decoded: Option<Decoded>,
}

/// The messages of a call, decoded by another server.
type Decoded = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

impl Messages {
    /// Reads the messages of a body, of at most `largest` bytes each.
    #[must_use]
    #[inline]
    pub fn new(body: RequestBody, largest: usize) -> Self {
        let (chunk, partial) = (Bytes::new(), BytesMut::new());
        Self {
            body,
            chunk,
            prefix: [0; PREFIX],
            prefix_length: 0,
            announced: None,
            partial,
            only: None,
            largest,
            held: false,
            decoded: None,
        }
    }

    /// Holds messages from now on: a message returns its flow-control credit and leaves the buffer budget not when
    /// it is read but when it and all parts of it are dropped. For services that keep messages while they wait for
    /// something.
    pub const fn hold(&mut self) {
        self.held = true;
    }

    /// Wraps the only message of a call, decoded by another server, of at most `largest` bytes.
    pub fn one(message: Bytes, largest: usize) -> Result<Self, Status> {
        check_size(message.len(), largest)?;
        let mut messages = Self::new(RequestBody::whole(Bytes::new()), largest);
        messages.only = Some(message);
        Ok(messages)
    }

    /// Wraps the messages of a streaming call, decoded by another server, of at most `largest` bytes each.
    pub fn decoded(
        messages: impl Stream<Item = Result<Bytes, Status>> + Send + 'static,
        largest: usize,
    ) -> Self {
        let decoded: Option<Decoded> = Some(Box::pin(messages));
        Self { decoded, ..Self::new(RequestBody::whole(Bytes::new()), largest) }
    }

    /// Polls for the next message; `None` at the end of the body.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        if let Some(decoded) = &mut self.decoded {
            let next = ready!(decoded.as_mut().poll_next(context));
            let checked = |message: Bytes| check_size(message.len(), self.largest).map(|()| message);
            return Poll::Ready(next.map(|message| message.and_then(checked)));
        }
        loop {
            if let Some(message) = self.next_arrived().transpose() {
                return Poll::Ready(Some(message.map(|message| self.hold_if_asked(message))));
            }
            match ready!(self.poll_body(context)) {
                Some(Ok(bytes)) => self.chunk = bytes,
                Some(Err(BodyFault::Message(status))) => return Poll::Ready(Some(Err(*status))),
                Some(Err(BodyFault::ClientGone(_))) => {
                    return Poll::Ready(Some(Err(Status::cancelled("the caller went away"))));
                }
                None if self.is_between_messages() => return Poll::Ready(None),
                None => return Poll::Ready(Some(Err(Status::internal("the call ended within a message")))),
            }
        }
    }

    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFault>>> {
        if self.held {
            return self.body.poll_unread(context);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // Trailers of a request are ignored.
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default())))
    }

    fn hold_if_asked(&self, message: Bytes) -> Bytes {
        if !self.held {
            return message;
        }
        let length = PREFIX + message.len();
        self.body.hold(message, length)
    }

    /// Returns the only message of a call, once the body has ended. Cancel-safe: the progress is kept in `self`.
    pub fn only(&mut self) -> impl Future<Output = Result<Bytes, Status>> {
        poll_fn(|context| self.poll_only(context))
    }

    /// Takes the message of a body that has arrived and is one message without flaws: that of nearly every unary call. Any
    /// other body is left to [`Messages::poll_next`].
    #[inline]
    fn take_whole(&mut self) -> Option<Bytes> {
        if self.only.is_some()
            || self.decoded.is_some()
            || !self.chunk.is_empty()
            || !self.is_between_messages()
        {
            return None;
        }
        take_whole(self.body.in_one_piece()?, self.largest)
    }

    #[inline]
    fn poll_only(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Status>> {
        if let Some(message) = self.take_whole() {
            return Poll::Ready(Ok(message));
        }
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

    #[inline]
    fn is_at_end(&self) -> bool {
        self.chunk.is_empty() && self.is_between_messages() && self.body.is_end_stream()
    }

    const fn is_between_messages(&self) -> bool {
        self.prefix_length == 0 && self.announced.is_none()
    }

    /// Returns the next message if its last byte has arrived.
    fn next_arrived(&mut self) -> Result<Option<Bytes>, Status> {
        if self.is_between_messages()
            && let Some((prefix, rest)) = self.chunk.split_first_chunk::<PREFIX>()
        {
            let length = self.length(*prefix)?;
            if length == rest.len() {
                // The message is the whole chunk, so the buffer is moved and not shared.
                let mut message = std::mem::take(&mut self.chunk);
                message.advance(PREFIX);
                return Ok(Some(message));
            }
            self.chunk.advance(PREFIX);
            if length < self.chunk.len() {
                return Ok(Some(self.chunk.split_to(length)));
            }
            self.announced = Some(length);
        }
        self.next_in_pieces()
    }

    /// Collects a message that arrives in pieces; `None` while it is incomplete.
    fn next_in_pieces(&mut self) -> Result<Option<Bytes>, Status> {
        let length = match self.announced {
            Some(length) => length,
            None => {
                let missing = (PREFIX - self.prefix_length).min(self.chunk.len());
                let piece = self.chunk.split_to(missing);
                self.prefix[self.prefix_length..self.prefix_length + missing].copy_from_slice(&piece);
                self.prefix_length += missing;
                if self.prefix_length < PREFIX {
                    return Ok(None);
                }
                self.prefix_length = 0;
                *self.announced.insert(self.length(self.prefix)?)
            }
        };
        let missing = (length - self.partial.len()).min(self.chunk.len());
        self.make_space(missing, length);
        self.partial.extend_from_slice(&self.chunk.split_to(missing));
        if self.partial.len() < length {
            return Ok(None);
        }
        self.announced = None;
        Ok(Some(std::mem::take(&mut self.partial).freeze()))
    }

    /// Makes space for the next bytes of a message. From [`SMALL`] on it allocates the whole message at once, and
    /// never more than that. Doubling would hold up to twice the reservation, and leave its smaller blocks behind.
    fn make_space(&mut self, bytes: usize, whole: usize) {
        let needed = self.partial.len() + bytes;
        if needed > self.partial.capacity() {
            let capacity = if needed < SMALL { 2 * needed } else { whole };
            let mut larger = BytesMut::with_capacity(capacity.min(whole));
            larger.extend_from_slice(&self.partial);
            self.partial = larger;
        }
    }

    /// Returns the length that a prefix announces.
    #[inline]
    fn length(&self, [flag, length @ ..]: [u8; PREFIX]) -> Result<usize, Status> {
        match (flag, u32::from_be_bytes(length) as usize) {
            (0, length) => check_size(length, self.largest).map(|()| length),
            (1, _) => Err(Status::internal("the message is compressed, but no grpc-encoding was named")),
            (flag, _) => Err(Status::internal(format!("{flag} is no flag of a message: it must be 0 or 1"))),
        }
    }
}
