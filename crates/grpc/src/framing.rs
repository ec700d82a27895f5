//! The framing of the messages of one body. Each has a prefix: a flag and the length.

use bytes::{Buf as _, Bytes};
use tonic::Status;

/// Bytes of a message's prefix: one flag and a length of four bytes.
pub const PREFIX: usize = 5;

/// The progress of the messages of one body.
#[derive(Debug, Default)]
pub struct MessageFraming {
    /// Bytes of the body that have arrived.
    received: u64,
    /// Offset of the end of the last complete message.
    complete: u64,
    prefix: [u8; PREFIX],
    prefix_length: u8,
    /// Bytes of the announced message that have not arrived.
    missing: u32,
    /// Length of the last announced message including its prefix.
    announced: usize,
    /// The last prefix is invalid: its flag or its length is not allowed.
    refused: bool,
    /// Messages may be compressed.
    compressed: bool,
}

impl MessageFraming {
    /// Creates the framing of a body whose messages may be compressed, or not.
    #[must_use]
    pub fn new(compressed: bool) -> Self {
        Self { compressed, ..Self::default() }
    }

    /// Reads the next piece of the body. Messages may have `largest` bytes.
    pub fn push(&mut self, mut piece: &[u8], largest: usize) {
        self.received += piece.len() as u64;
        while !piece.is_empty() {
            if self.missing > 0 {
                let length = piece.len().min(self.missing as usize);
                self.missing -= length as u32;
                piece = &piece[length..];
            } else {
                let begun = usize::from(self.prefix_length);
                let length = piece.len().min(PREFIX - begun);
                self.prefix[begun..begun + length].copy_from_slice(&piece[..length]);
                self.prefix_length += length as u8;
                piece = &piece[length..];
                if usize::from(self.prefix_length) < PREFIX {
                    return;
                }
                self.announce(largest);
            }
            if self.missing == 0 {
                self.complete = self.received - piece.len() as u64;
            }
        }
    }

    fn announce(&mut self, largest: usize) {
        let [flag, length @ ..] = self.prefix;
        self.prefix_length = 0;
        self.missing = u32::from_be_bytes(length);
        self.announced = PREFIX.saturating_add(self.missing as usize);
        self.refused |= flag > u8::from(self.compressed) || self.missing as usize > largest;
    }

    /// Returns the bytes of the body that have arrived.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Returns the offset of the end of the last complete message. Later bytes belong to an incomplete one.
    #[must_use]
    pub const fn complete(&self) -> u64 {
        self.complete
    }

    /// True if a message has begun to arrive and is incomplete.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        self.received > self.complete
    }

    /// Returns the length, including its prefix, of an incomplete message that was announced and is not refused.
    #[must_use]
    pub fn announced(&self) -> Option<usize> {
        (self.missing > 0 && !self.refused).then_some(self.announced)
    }
}

/// Checks that a message has at most `largest` bytes.
#[inline]
pub fn check_size(length: usize, largest: usize) -> Result<(), Status> {
    if length <= largest {
        return Ok(());
    }
    Err(Status::resource_exhausted(format!("the message has {length} bytes; at most {largest} may be sent")))
}

/// Takes the message of a body that has arrived and is one message without flaws, of at most `largest` bytes: that of nearly
/// every unary call. Any other body is left as it is.
#[inline]
pub fn take_whole(body: &mut Bytes, largest: usize) -> Option<Bytes> {
    let ([0, length @ ..], rest) = body.split_first_chunk::<PREFIX>()? else { return None };
    let length = u32::from_be_bytes(*length) as usize;
    if length != rest.len() || length > largest {
        return None;
    }
    let mut message = std::mem::take(body);
    message.advance(PREFIX);
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> Vec<u8> {
        [&[0], &(length as u32).to_be_bytes()[..], &vec![7; length]].concat()
    }

    #[test]
    fn messages_end_where_they_end_in_whatever_pieces_they_come() {
        let body = [message(3), message(0), message(300), message(1)].concat();
        let ends = [8, 13, 318, 324];
        for piece in 1..=body.len() {
            let (mut framing, mut arrived) = (MessageFraming::default(), 0);
            for bytes in body.chunks(piece) {
                framing.push(bytes, 300);
                arrived += bytes.len() as u64;
                let complete = ends.into_iter().filter(|end| *end <= arrived).max().unwrap_or(0);
                assert_eq!((framing.complete(), framing.received()), (complete, arrived), "{piece}");
                assert_eq!(framing.is_partial(), arrived > complete);
            }
            assert_eq!(framing.announced(), None);
        }
    }

    #[test]
    fn a_message_is_announced_by_its_prefix_if_it_can_be_served() {
        let plain = [(0, 300, Some(305)), (0, 301, None), (1, 300, None), (0, 0, None)];
        let compressed = [(0, 300, Some(305)), (1, 301, None), (1, 300, Some(305)), (2, 300, None)];
        let cases = plain.map(|case| (false, case)).into_iter().chain(compressed.map(|case| (true, case)));
        for (compressed, (flag, length, announced)) in cases {
            let mut framing = MessageFraming::new(compressed);
            framing.push(&[flag, 0, 0], 300);
            assert_eq!(framing.announced(), None);
            framing.push(&(length as u16).to_be_bytes(), 300);
            assert_eq!(framing.announced(), announced, "{flag} {length}");
        }
    }
}
