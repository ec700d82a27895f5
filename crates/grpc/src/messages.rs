//! The messages of a call, as gRPC frames them: a flag, a length, and so many bytes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream::Stream;
use http_body::Body as _;
use tonic::Status;

use crate::body::{BodyFault, RequestBody};

/// The flag and the length before every message.
pub const PREFIX: usize = 5;

/// A message of which fewer bytes have arrived gets space little by little: it may have been announced only.
const SMALL: usize = 8 << 10;

/// The messages of a call. A message that arrives in one piece is not copied.
pub struct Messages {
    body: RequestBody,
    /// Bytes that have arrived and are not parsed yet.
    chunk: Bytes,
    /// A message that arrives in pieces: its prefix as far as it is here, then how many bytes it has, and those that
    /// are here. They are kept without the prefix: a length of a power of two is an allocator's own size.
    prefix: [u8; PREFIX],
    prefix_length: usize,
    announced: Option<usize>,
    partial: BytesMut,
    /// The first message of a call that has one, while its end is awaited.
    only: Option<Bytes>,
    /// The most bytes that a message may have.
    largest: usize,
    /// Whether a message counts as unread until it is dropped.
    held: bool,
    /// Where they come from instead, without their prefixes.
    decoded: Option<Decoded>,
}

/// The messages of a call as another server has read them.
type Decoded = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

impl Messages {
    /// The messages of a body, of at most `largest` bytes each.
    #[must_use]
    #[inline]
    pub fn of(body: RequestBody, largest: usize) -> Self {
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

    /// From now on a message returns its flow-control credit, and leaves the buffer budget, not when it is read but
    /// when it and all parts of it are dropped: for services that keep messages while they wait for something.
    pub const fn hold(&mut self) {
        self.held = true;
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
        // Trailers are metadata, of which none means anything here.
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default())))
    }

    fn hold_if_asked(&self, message: Bytes) -> Bytes {
        if !self.held {
            return message;
        }
        let length = PREFIX + message.len();
        self.body.hold(message, length)
    }

    /// The message of a call that has exactly one, once the body has ended. It may be asked again after it was
    /// not ready.
    pub fn only(&mut self) -> impl Future<Output = Result<Bytes, Status>> {
        poll_fn(|context| self.poll_only(context))
    }

    #[inline]
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

    #[inline]
    fn is_at_end(&self) -> bool {
        self.chunk.is_empty() && self.is_between_messages() && self.body.is_end_stream()
    }

    const fn is_between_messages(&self) -> bool {
        self.prefix_length == 0 && self.announced.is_none()
    }

    /// The next message of those whose last byte is here.
    fn next_arrived(&mut self) -> Result<Option<Bytes>, Status> {
        if self.is_between_messages()
            && let Some((prefix, rest)) = self.chunk.split_first_chunk::<PREFIX>()
        {
            let length = self.length(*prefix)?;
            if length == rest.len() {
                // The rest of the chunk needs no share in it.
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

    /// The same, of a message that arrives in pieces.
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

    /// Makes space for the next bytes of a message: for all of it where a part is here, and never for more. A buffer
    /// that doubles would hold twice what was reserved for the message, and leave its smaller blocks behind.
    fn make_space(&mut self, bytes: usize, whole: usize) {
        let needed = self.partial.len() + bytes;
        if needed > self.partial.capacity() {
            let capacity = if needed < SMALL { 2 * needed } else { whole };
            let mut larger = BytesMut::with_capacity(capacity.min(whole));
            larger.extend_from_slice(&self.partial);
            self.partial = larger;
        }
    }

    /// The length of the message that a prefix announces.
    #[inline]
    fn length(&self, [flag, length @ ..]: [u8; PREFIX]) -> Result<usize, Status> {
        match (flag, u32::from_be_bytes(length) as usize) {
            (0, length) => check_size(length, self.largest).map(|()| length),
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
    Err(Status::resource_exhausted(format!("the message has {length} bytes; at most {largest} may be sent")))
}
