//! Fields of a line as JSON.

use crate::json_line;

pub(super) fn key(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

pub(super) fn number(out: &mut Vec<u8>, name: &str, value: u64) {
    key(out, name);
    // Writing to a Vec cannot fail.
    let _ = serde_json::to_writer(out, &value);
}

pub(super) fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    key(out, name);
    quoted(out, value);
}

pub(super) fn quoted(out: &mut Vec<u8>, text: &str) {
    json_line::push(out, text);
}
