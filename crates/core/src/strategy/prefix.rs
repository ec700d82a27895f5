//! Prefixes of key identities. `key` appends the fields of a request.

use super::Limit;

pub(super) fn identity_prefix(strategy: &str, limit: &Limit) -> Box<[u8]> {
    let mut out = Vec::new();
    write_sized(&mut out, b's', strategy);
    write_sized(&mut out, b'l', &limit.name);
    write_sized(&mut out, b'e', limit.algorithm.engine().name());
    out.into()
}

/// Appends `text` behind its kind and its length.
#[inline]
pub(crate) fn write_sized(out: &mut Vec<u8>, kind: u8, text: &str) {
    // Names and parts have bounds far below what four bytes count.
    let [a, b, c, d] = (text.len() as u32).to_le_bytes();
    out.extend_from_slice(&[kind, a, b, c, d]);
    out.extend_from_slice(text.as_bytes());
}
