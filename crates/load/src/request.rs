//! Request headers. They never change, so the block is prepared once.

use weir_grpc::hpack::{TABLE, write_text};

use crate::access::ServerAccess;

/// Header block of every request: literals in the first, and references to them in the others.
#[derive(Debug)]
pub(super) struct RequestBlock {
    spelled: Vec<u8>,
    /// `None` if the server's table has no room for our headers, which are then always literals.
    short: Option<Vec<u8>>,
    is_first: bool,
}

/// Indexes in the static table.
const METHOD_POST: u8 = 3;
const SCHEME_HTTP: u8 = 6;
const SCHEME_HTTPS: u8 = 7;
const AUTHORIZATION: u8 = 23;
const AUTHORITY: u8 = 1;
const PATH: u8 = 4;
const CONTENT_TYPE: u8 = 31;
const USER_AGENT: u8 = 58;

const INDEXED: u8 = 0x80;
const LITERAL_KEPT: u8 = 0x40;

/// First index of the dynamic table: the newest header.
const NEWEST: u8 = 62;

/// Overhead of a table entry beside its text, the names of the static table included.
const ENTRY: usize = 32 + 16;

impl RequestBlock {
    pub(super) fn new(authority: &str, path: &str, access: &ServerAccess) -> Self {
        let scheme = if access.tls.is_some() { SCHEME_HTTPS } else { SCHEME_HTTP };
        let mut spelled = vec![INDEXED | METHOD_POST, INDEXED | scheme];
        let user_agent = concat!("weir-load/", env!("CARGO_PKG_VERSION"));
        let named = [
            (PATH, path),
            (AUTHORITY, authority),
            (CONTENT_TYPE, "application/grpc"),
            (USER_AGENT, user_agent),
        ];
        let token = access.token.as_ref().map(|token| (AUTHORIZATION, token.header()));
        let mut count = 1;
        for (place, value) in named.into_iter().chain(token) {
            spelled.push(LITERAL_KEPT | place);
            write_text(value.as_bytes(), &mut spelled);
            count += 1;
        }
        spelled.push(LITERAL_KEPT);
        write_text(b"te", &mut spelled);
        write_text(b"trailers", &mut spelled);
        // The headers that the first request added to the table, the oldest last.
        let kept = (NEWEST..NEWEST + count).rev().map(|place| INDEXED | place);
        let short: Vec<u8> = [INDEXED | METHOD_POST, INDEXED | scheme].into_iter().chain(kept).collect();
        // A token may be longer than the table, which it would empty.
        let size: usize = spelled.len() + usize::from(count) * ENTRY;
        Self { spelled, short: (size <= TABLE).then_some(short), is_first: true }
    }

    /// The block of the next request.
    pub(super) fn next(&mut self) -> &[u8] {
        match &self.short {
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
    use crate::access::Token;

    fn decoded(decoder: &mut Decoder<'_>, block: &[u8]) -> Vec<(String, String)> {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        decoder.decode(block).unwrap().into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn the_short_block_says_what_the_first_has_spelled_out() {
        let (mut server, long) = (Decoder::new(), "h".repeat(300));
        let mut block = RequestBlock::new(&long, "/a/B", &ServerAccess::default());
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

    /// The token is one of the headers that the table keeps. One that is too long for the table is always spelled out.
    #[test]
    fn a_token_is_in_every_block() {
        for (length, short) in [(40, 8), (5_000, 2_000)] {
            let access = ServerAccess { tls: None, token: Token::new(&"t".repeat(length)).ok() };
            let (mut server, mut block) = (Decoder::new(), RequestBlock::new("a:1", "/a/B", &access));
            let first = decoded(&mut server, block.next());
            let token = ("authorization".to_owned(), format!("Bearer {}", "t".repeat(length)));
            assert!(first.contains(&token));
            assert!(block.next().len() >= short);
            assert_eq!(decoded(&mut server, block.next()), first);
        }
    }
}
