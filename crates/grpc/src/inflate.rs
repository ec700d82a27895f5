//! Decompression of gzip requests: their messages are inflated before anything else reads them.
//!
//! The size limit of a method holds for the compressed and for the inflated message. The inflated bytes are held in
//! the buffer budget until the message is dropped.

use std::io::Read as _;
use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use flate2::read::GzDecoder;
use tonic::Status;
use tonic::metadata::MetadataValue;

use crate::budget::{BufferBudget, HeldBytes, no_space};
use crate::events::{ConnectionEvent, ConnectionObserver};
use crate::framing::{PREFIX, check_size};
use crate::{reply, turn};

/// The supported encoding of requests, beside `identity`.
pub const GZIP: &str = "gzip";

/// Inflated bytes that cost as much time as one decision.
const BYTES_PER_DECISION: usize = 2 << 10;

/// Inflates the messages of one body.
pub struct Inflater {
    /// Received bytes of messages that are not inflated yet.
    waiting: BytesMut,
    largest: usize,
    budget: BufferBudget,
    observer: Arc<dyn ConnectionObserver>,
}

/// A message whose bytes are held in the budget until it is dropped.
struct CountedMessage {
    message: Bytes,
    _held: HeldBytes,
}

impl AsRef<[u8]> for CountedMessage {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

impl Inflater {
    /// Creates a decompressor for messages of at most `largest` bytes.
    #[must_use]
    pub fn new(largest: usize, budget: BufferBudget, observer: Arc<dyn ConnectionObserver>) -> Self {
        Self { waiting: BytesMut::new(), largest, budget, observer }
    }

    /// Appends received bytes of the body.
    pub fn push(&mut self, piece: &[u8]) {
        self.waiting.extend_from_slice(piece);
    }

    /// True if every received byte belongs to a message that was taken.
    #[must_use]
    pub fn is_between_messages(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the next message, inflated and with its prefix, and the bytes of the body that it took; `None` while
    /// it is incomplete.
    pub fn next_message(&mut self) -> Option<Result<(Bytes, usize), Status>> {
        let [flag, length @ ..] = *self.waiting.first_chunk::<PREFIX>()?;
        let length = u32::from_be_bytes(length) as usize;
        if let Err(status) = check_size(length, self.largest) {
            return Some(Err(status));
        }
        let whole = PREFIX + length;
        if self.waiting.len() < whole {
            self.waiting.reserve(whole - self.waiting.len());
            return None;
        }
        let mut message = self.waiting.split_to(whole).freeze();
        let plain = match flag {
            0 => Ok(message),
            1 => {
                message.advance(PREFIX);
                self.inflate(&message)
            }
            flag => Err(Status::internal(format!("{flag} is no flag of a message: it must be 0 or 1"))),
        };
        Some(plain.map(|plain| (plain, whole)))
    }

    fn inflate(&self, compressed: &[u8]) -> Result<Bytes, Status> {
        let most = self.largest as u64 + 1;
        let mut fault = None;
        let message = reply::framed(compressed.len(), |out| {
            fault = GzDecoder::new(compressed).take(most).read_to_end(out).err();
        });
        if let Some(fault) = fault {
            return Err(Status::internal(format!("the message cannot be read as gzip: {fault}")));
        }
        let length = message.len().saturating_sub(PREFIX);
        turn::spend(length / BYTES_PER_DECISION);
        if length > self.largest {
            let most = self.largest;
            return Err(Status::resource_exhausted(format!(
                "the message has more than {most} bytes when it is decompressed; at most {most} may be sent"
            )));
        }
        let Some(held) = self.budget.hold(message.len()) else {
            self.observer
                .observe(ConnectionEvent::BudgetRefusal, "the buffer budget is full: a compressed message");
            return Err(no_space());
        };
        Ok(Bytes::from_owner(CountedMessage { message, _held: held }))
    }
}

/// Returns the status of a call with an unsupported encoding.
#[must_use]
pub fn unknown_encoding(encoding: &str) -> Status {
    let mut status =
        Status::unimplemented(format!("grpc-encoding is {encoding:?}: requests may have identity or gzip"));
    status.metadata_mut().insert("grpc-accept-encoding", MetadataValue::from_static("identity,gzip"));
    status
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tonic::Code;

    use super::*;
    use crate::events::Unobserved;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
        [&[flag], &(message.len() as u32).to_be_bytes()[..], message].concat()
    }

    fn inflater(budget: &BufferBudget) -> Inflater {
        Inflater::new(1000, budget.clone(), Arc::new(Unobserved))
    }

    #[test]
    fn messages_are_plain_in_whatever_pieces_they_come() {
        let plain = [b"hello".to_vec(), vec![7; 1000], Vec::new()];
        let bodies = [framed(1, &gzip(&plain[0])), framed(0, &plain[1]), framed(1, &gzip(&plain[2]))];
        let expected: Vec<_> =
            plain.iter().zip(&bodies).map(|(plain, body)| (framed(0, plain), body.len())).collect();
        let body = bodies.concat();
        let budget = BufferBudget::new(1 << 20, 1);
        for piece in [1, 7, 1000, body.len()] {
            let (mut inflater, mut messages) = (inflater(&budget), Vec::new());
            for piece in body.chunks(piece) {
                inflater.push(piece);
                while let Some(message) = inflater.next_message() {
                    let (message, length) = message.unwrap();
                    messages.push((message.to_vec(), length));
                }
            }
            assert!(inflater.is_between_messages());
            assert_eq!(messages, expected, "{piece}");
        }
        assert_eq!(budget.taken(), 0);
    }

    /// Ten thousand bytes compress to thirty.
    #[test]
    fn a_message_is_bounded_when_it_is_plain_and_held_until_it_is_dropped() {
        let fault = |budget: usize, message: &[u8]| {
            let mut inflater = inflater(&BufferBudget::new(budget, 1));
            inflater.push(message);
            inflater.next_message().unwrap().map(drop).unwrap_err()
        };
        let bomb = fault(1 << 20, &framed(1, &gzip(&[7; 10_000])));
        assert_eq!(bomb.code(), Code::ResourceExhausted);
        assert!(bomb.message().contains("1000"), "{bomb}");
        let full = fault(500, &framed(1, &gzip(&[7; 1000])));
        assert_eq!(full.code(), Code::ResourceExhausted);
        assert!(full.message().contains("max_buffered_bytes"), "{full}");
        assert_eq!(fault(1 << 20, &framed(1, b"hello")).code(), Code::Internal);
        assert_eq!(fault(1 << 20, &framed(1, &gzip(b"hello")[..20])).code(), Code::Internal);
        assert_eq!(fault(1 << 20, &framed(2, b"hello")).code(), Code::Internal);
        assert_eq!(fault(1 << 20, &framed(1, &[0; 1001])).code(), Code::ResourceExhausted);

        let budget = BufferBudget::new(1 << 20, 1);
        let mut inflater = inflater(&budget);
        inflater.push(&framed(1, &gzip(&[7; 900])));
        let (message, _) = inflater.next_message().unwrap().unwrap();
        let part = message.slice(10..20);
        drop(message);
        assert_eq!(budget.taken(), 905, "a part of it is still there");
        drop(part);
        assert_eq!(budget.taken(), 0);
    }
}
