//! Reads the header blocks of responses.

use std::sync::Arc;

use percent_encoding::percent_decode;
use weir_grpc::frames::FrameFault;
use weir_grpc::hpack::{Decoder, HeaderField};

/// Decoder of one connection's header blocks, which must be read in order.
#[derive(Debug, Default)]
pub(super) struct ResponseBlocks(Decoder);

/// Status fields of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The HTTP status; `None` in trailers.
    pub(super) http: Option<u16>,
    /// The gRPC status; `None` in the first of two blocks.
    pub(super) grpc: Option<i32>,
    /// Error text.
    pub(super) message: Option<Arc<str>>,
}

const UNREADABLE: FrameFault = "it sent headers that cannot be read";

const UNKNOWN: i32 = 2;

impl ResponseBlocks {
    pub(super) fn read(&mut self, block: &[u8]) -> Result<Said, FrameFault> {
        let mut said = Said::default();
        self.0.read(block, |field| said.take(field)).map_err(|_| UNREADABLE)?;
        Ok(said)
    }
}

impl Said {
    fn take(&mut self, HeaderField { name, value, .. }: HeaderField<'_>) {
        match name {
            b":status" => self.http = Some(parsed(value).unwrap_or_default()),
            b"grpc-status" => self.grpc = Some(parsed(value).unwrap_or(UNKNOWN)),
            // gRPC writes bytes of a message that are not printable ASCII as %XX.
            b"grpc-message" => self.message = Some(percent_decode(value).decode_utf8_lossy().into()),
            _ => {}
        }
    }
}

fn parsed<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers send statuses spelled out first, then as indexes of their table.
    #[test]
    fn statuses_are_read_however_they_are_written() {
        let mut blocks = ResponseBlocks::default();
        let mut server = fluke_hpack::Encoder::new();
        let mut read =
            |headers: &[(&[u8], &[u8])]| blocks.read(&server.encode(headers.iter().copied())).unwrap();
        for _ in 0..3 {
            assert_eq!(read(&[(b":status", b"200"), (b"date", b"today")]).http, Some(200));
            assert_eq!(read(&[(b":status", b"418")]).http, Some(418));
            assert_eq!(read(&[(b"grpc-status", b"0")]).grpc, Some(0));
            let said = read(&[(b"grpc-status", b"5"), (b"grpc-message", b"no%20such%zz %E2%82%AC")]);
            assert_eq!((said.grpc, said.message.as_deref()), (Some(5), Some("no such%zz €")));
        }
        assert_eq!(read(&[(b"grpc-status", b"many")]).grpc, Some(UNKNOWN));
        assert_eq!(blocks.read(b"\x80"), Err(UNREADABLE));
    }
}
