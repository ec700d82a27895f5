//! Request headers. They never change, so the block is prepared once.

use weir_grpc::hpack::{TABLE, write_text};

/// Header block of every request: literals in the first, and five references to them in the others.
#[derive(Debug)]
pub(super) struct RequestBlock {
    spelled: Vec<u8>,
    /// `None` if the server's table has no room for our headers, which are then always literals.
    short: Option<&'static [u8]>,
    is_first: bool,
}

/// Indexes in the static table.
const METHOD_POST: u8 = 3;
const SCHEME_HTTP: u8 = 6;
const AUTHORITY: u8 = 1;
const PATH: u8 = 4;
const CONTENT_TYPE: u8 = 31;
const USER_AGENT: u8 = 58;

const INDEXED: u8 = 0x80;
const LITERAL_KEPT: u8 = 0x40;

/// First index of the dynamic table: the newest header.
const NEWEST: u8 = 62;

/// Method, scheme, and the five headers that the first request added to the table, the oldest last.
const SHORT: &[u8] = &[
    INDEXED | METHOD_POST,
    INDEXED | SCHEME_HTTP,
    INDEXED | (NEWEST + 4),
    INDEXED | (NEWEST + 3),
    INDEXED | (NEWEST + 2),
    INDEXED | (NEWEST + 1),
    INDEXED | NEWEST,
];

impl RequestBlock {
    pub(super) fn new(authority: &str, path: &str) -> Self {
        let mut spelled = vec![INDEXED | METHOD_POST, INDEXED | SCHEME_HTTP];
        for (place, value) in [(PATH, path), (AUTHORITY, authority), (CONTENT_TYPE, "application/grpc")] {
            spelled.push(LITERAL_KEPT | place);
            write_text(value.as_bytes(), &mut spelled);
        }
        spelled.push(LITERAL_KEPT);
        write_text(b"te", &mut spelled);
        write_text(b"trailers", &mut spelled);
        spelled.push(LITERAL_KEPT | USER_AGENT);
        write_text(concat!("weir-load/", env!("CARGO_PKG_VERSION")).as_bytes(), &mut spelled);
        Self { spelled, short: Some(SHORT), is_first: true }
    }

    /// The block of the next request.
    pub(super) fn next(&mut self) -> &[u8] {
        match self.short {
            Some(short) if !self.is_first => short,
            _ => {
                self.is_first = false;
                &self.spelled
            }
        }
    }

    /// Sets the size of the server's table. A smaller one than the default is not used at all: a block must announce
    /// that once, with an update to 0, and may do so always.
    pub(super) fn set_table_size(&mut self, size: u32) {
        const UPDATE_TO_ZERO: u8 = 0x20;
        if (size as usize) < TABLE && self.short.is_some() {
            self.short = None;
            self.spelled.insert(0, UPDATE_TO_ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use fluke_hpack::Decoder;

    use super::*;

    fn decoded(decoder: &mut Decoder<'_>, block: &[u8]) -> Vec<(String, String)> {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        decoder.decode(block).unwrap().into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn the_short_block_says_what_the_first_has_spelled_out() {
        let (mut server, long) = (Decoder::new(), "h".repeat(300));
        let mut block = RequestBlock::new(&long, "/a/B");
        let first = decoded(&mut server, block.next());
        assert_eq!(first[..2], [(":method".into(), "POST".into()), (":scheme".into(), "http".into())]);
        assert_eq!(first[2..4], [(":path".into(), "/a/B".into()), (":authority".into(), long)]);
        for _ in 0..3 {
            assert_eq!(block.next().len(), 7);
            assert_eq!(decoded(&mut server, block.next()), first);
        }
        block.set_table_size(100);
        server.set_max_allowed_table_size(100);
        assert_eq!(decoded(&mut server, block.next()), first);
        assert_eq!(decoded(&mut server, block.next()), first);
    }
}
