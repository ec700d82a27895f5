//! Decodes the header blocks of a connection's requests, and remembers the last one.
//!
//! A client sends the same headers with each call of a method. Once they are in HPACK's dynamic table, their block
//! is the same few indices each time, and to decode it costs more than the rest of a small call's headers. A block
//! that changes no table is a function of its bytes and of the table, so equal bytes mean the same request until
//! the table changes.

use crate::hpack::{Decoder, Undecodable};
use crate::request_headers::{HeaderFault, HeaderReader, RequestHead};
use crate::service::Methods;

/// The largest block that is remembered, in bytes.
const MAX_BLOCK: usize = 512;

/// The most bytes of kept headers that are remembered: as many as HPACK's table may hold of them.
const MAX_KEPT: usize = crate::hpack::TABLE;

/// The decoder of a connection's header blocks. It must get all of them, in their order.
#[derive(Default)]
pub(crate) struct RequestDecoder {
    hpack: Decoder,
    last: Option<RepeatedRequest>,
}

/// A request that was read without a change of the dynamic table.
struct RepeatedRequest {
    block: Vec<u8>,
    head: RequestHead,
    /// [`Decoder::changes`] when it was read.
    changes: u64,
}

impl RequestDecoder {
    /// Decodes the headers of a request of at most `most` bytes.
    #[inline]
    pub(crate) fn request(
        &mut self,
        block: &[u8],
        most: usize,
        methods: &Methods,
    ) -> Result<Result<RequestHead, HeaderFault>, Undecodable> {
        if let Some(last) = &self.last
            && last.block == block
            && last.changes == self.hpack.changes()
        {
            return Ok(Ok(last.head.clone()));
        }
        self.new_request(block, most, methods)
    }

    fn new_request(
        &mut self,
        block: &[u8],
        most: usize,
        methods: &Methods,
    ) -> Result<Result<RequestHead, HeaderFault>, Undecodable> {
        let before = self.hpack.changes();
        let mut reader = HeaderReader::of_request(most, methods);
        self.hpack.read(block, |field| reader.field(field))?;
        let request = reader.request();
        match &request {
            Ok(head) if before == self.hpack.changes() => self.remember(block, head),
            // Its headers may be secrets, which are held no longer than needed.
            _ => self.last = None,
        }
        Ok(request)
    }

    /// Decodes trailers, and returns whether they are well-formed.
    pub(crate) fn trailers(
        &mut self,
        block: &[u8],
        most: usize,
        methods: &Methods,
    ) -> Result<bool, Undecodable> {
        let mut reader = HeaderReader::of_trailers(most, methods);
        self.hpack.read(block, |field| reader.field(field))?;
        Ok(reader.were_trailers())
    }

    /// Forgets the last request, so that an idle connection holds less.
    pub(crate) fn shrink(&mut self) {
        self.last = None;
    }

    fn remember(&mut self, block: &[u8], head: &RequestHead) {
        if block.len() > MAX_BLOCK || !head.is_hot_and_plain() || head.kept().bytes() > MAX_KEPT {
            self.last = None;
            return;
        }
        let mut bytes = self.last.take().map_or_else(Vec::new, |last| last.block);
        bytes.clear();
        bytes.extend_from_slice(block);
        self.last = Some(RepeatedRequest { block: bytes, head: head.clone(), changes: self.hpack.changes() });
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use proptest::prelude::*;

    use super::*;
    use crate::intercept::{CheckCalls, Intercept};
    use crate::peer::Peer;
    use crate::service::HotMethod;

    const HOT: &str = "/weir.v1.RateLimitService/ShouldAllow";

    struct Keeps(Vec<HeaderName>);

    impl Intercept for Keeps {
        fn names(&self) -> &[HeaderName] {
            &self.0
        }

        fn connected(&self, _peer: std::sync::Arc<Peer>) -> std::sync::Arc<dyn CheckCalls> {
            unreachable!("no connection begins")
        }
    }

    fn methods() -> Methods {
        let hot = HotMethod { path: HOT, largest_message: 1_000, together: true, streaming: false };
        let keeps = Keeps(vec![http::header::AUTHORIZATION]);
        Methods::new(vec![hot], 1_000).intercepted_by(std::sync::Arc::new(keeps))
    }

    /// A request of a hot method, or a fault, by number.
    fn fields(kind: u8, token: u8) -> Vec<(&'static str, String)> {
        let path = if kind == 1 { "/grpc.health.v1.Health/Check" } else { HOT };
        let mut fields = vec![
            (":method", if kind == 2 { "GET" } else { "POST" }.to_owned()),
            (":scheme", "http".to_owned()),
            (":path", path.to_owned()),
            ("content-type", "application/grpc".to_owned()),
            ("authorization", format!("Bearer {token}")),
            // The encoder of the tests puts only names that the static table lacks into the dynamic table.
            ("x-caller", token.to_string()),
        ];
        match kind {
            3 => fields.push(("grpc-encoding", "gzip".to_owned())),
            4 => fields.push(("grpc-timeout", format!("{token}S"))),
            5 => fields.push(("connection", "close".to_owned())),
            6 => fields.push(("x-long", "x".repeat(2_000))),
            _ => {}
        }
        fields
    }

    fn pairs<'a>(fields: &'a [(&str, String)]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
    }

    #[test]
    fn an_equal_block_is_the_same_request_and_is_remembered() {
        let (mut peer, mut decoder) = (fluke_hpack::Encoder::new(), RequestDecoder::default());
        let fields = fields(0, 7);
        let mut read = |decoder: &mut RequestDecoder| {
            let block = peer.encode(pairs(&fields));
            decoder.request(&block, 1_000, &methods()).unwrap().unwrap()
        };
        let first = read(&mut decoder);
        assert!(decoder.last.is_none(), "it has changed the table");
        for _ in 0..3 {
            assert_eq!(read(&mut decoder), first);
            assert!(decoder.last.is_some());
        }
        decoder.shrink();
        assert_eq!(read(&mut decoder), first);
    }

    #[test]
    fn equal_bytes_mean_another_request_once_the_table_has_changed() {
        let mut decoder = RequestDecoder::default();
        // A literal path enters the table at index 62; the blocks after it refer to it.
        let literal = |path: &str| {
            let mut block = vec![0x44];
            crate::hpack::write_text(path.as_bytes(), &mut block);
            block.extend([0x83, 0x86]);
            block
        };
        let mut method =
            |block: &[u8]| decoder.request(block, 1_000, &methods()).unwrap().map(|head| head.method);
        assert!(method(&literal(HOT)).unwrap().is_some());
        assert!(method(&[0x83, 0x86, 0xbe]).unwrap().is_some());
        assert!(method(&[0x83, 0x86, 0xbe]).unwrap().is_some());
        assert_eq!(method(&literal("/other/Method")), Ok(None));
        assert_eq!(method(&[0x83, 0x86, 0xbe]), Ok(None), "the newest entry is another path");
    }

    proptest! {
        /// Requests, faults and trailers in any order: each is read as by a decoder that remembers nothing.
        #[test]
        fn it_reads_as_a_decoder_without_memory(blocks in prop::collection::vec((0..8_u8, 0..3_u8), 1..60)) {
            let (mut peer, methods) = (fluke_hpack::Encoder::new(), methods());
            let (mut tested, mut reference) = (RequestDecoder::default(), Decoder::default());
            for (kind, token) in blocks {
                let block = if kind == 7 {
                    peer.encode([(&b"x-trailer"[..], &[b'0' + token][..])])
                } else {
                    peer.encode(pairs(&fields(kind, token)))
                };
                let mut reader = if kind == 7 {
                    HeaderReader::of_trailers(1_000, &methods)
                } else {
                    HeaderReader::of_request(1_000, &methods)
                };
                reference.read(&block, |field| reader.field(field)).unwrap();
                if kind == 7 {
                    prop_assert_eq!(tested.trailers(&block, 1_000, &methods).unwrap(), reader.were_trailers());
                } else {
                    prop_assert_eq!(tested.request(&block, 1_000, &methods).unwrap(), reader.request());
                }
            }
        }
    }
}
