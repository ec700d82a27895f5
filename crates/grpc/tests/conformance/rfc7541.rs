//! RFC 7541: HPACK, by section.

mod appendix_c;
mod section_2;
mod section_4;
mod section_5;
mod section_6;

use crate::case::Case;
use crate::wire::*;

pub(crate) fn cases() -> Vec<Case> {
    [section_2::cases(), section_4::cases(), section_5::cases(), section_6::cases(), appendix_c::cases()]
        .into_iter()
        .flatten()
        .collect()
}

/// A call that has this behind its own fields.
fn call_with(stream: u32, more: &[u8]) -> Vec<u8> {
    let fields = [&block(&CALL), more].concat();
    [frame(HEADERS, END_HEADERS, stream, fields), data(stream, END_STREAM, message("a"))].concat()
}

/// A call that has this before its own fields.
fn call_behind(stream: u32, first: &[u8]) -> Vec<u8> {
    let fields = [first, &block(&CALL)].concat();
    [frame(HEADERS, END_HEADERS, stream, fields), data(stream, END_STREAM, message("a"))].concat()
}

/// A literal with incremental indexing and a new name (6.2.1).
fn insert(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0x40];
    string(&mut bytes, name.as_bytes());
    string(&mut bytes, value.as_bytes());
    bytes
}

/// An indexed field (6.1).
fn indexed(index: usize) -> Vec<u8> {
    integer(0x80, 7, index)
}

/// A dynamic table size update (6.3).
fn resize(size: usize) -> Vec<u8> {
    integer(0x20, 5, size)
}
