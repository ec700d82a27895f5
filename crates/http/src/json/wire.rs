//! Protobuf's wire format: tags, numbers, lengths.

/// The types of values on the wire.
pub(super) const VARINT: u32 = 0;
pub(super) const FIXED64: u32 = 1;
pub(super) const LENGTH: u32 = 2;
pub(super) const FIXED32: u32 = 5;

/// A value of a field, in place.
#[derive(Debug, Clone, Copy)]
pub(super) enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Appends a number.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the tag of a field.
pub(super) fn put_tag(out: &mut Vec<u8>, number: u32, kind: u32) {
    put_varint(out, u64::from(number << 3 | kind));
}

/// Appends a field of bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_tag(out, number, LENGTH);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Makes everything from `start` on a field of bytes.
pub(super) fn wrap(out: &mut Vec<u8>, start: usize, number: u32) {
    let length = out.len() - start;
    let mut head = Vec::with_capacity(8);
    put_tag(&mut head, number, LENGTH);
    put_varint(&mut head, length as u64);
    out.splice(start..start, head);
}

/// Takes a number; `None` if it is cut off or too long.
pub(super) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    // Most numbers, and all tags of small messages, have one byte.
    if let [byte @ 0..=0x7f, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(*byte));
    }
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * index as u32).unwrap_or(0);
        if byte & 0x80 == 0 {
            *bytes = &bytes[index + 1..];
            return Some(value);
        }
    }
    None
}

/// Takes a field: its number and value.
pub(super) fn take_field<'a>(bytes: &mut &'a [u8]) -> Option<(u32, WireValue<'a>)> {
    let tag = u32::try_from(take_varint(bytes)?).ok()?;
    let value = match tag & 7 {
        VARINT => WireValue::Number(take_varint(bytes)?),
        FIXED64 => WireValue::Number(u64::from_le_bytes(take(bytes, 8)?.try_into().ok()?)),
        FIXED32 => WireValue::Number(u64::from(u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?))),
        LENGTH => {
            let length = usize::try_from(take_varint(bytes)?).ok()?;
            WireValue::Bytes(take(bytes, length)?)
        }
        _ => return None,
    };
    Some((tag >> 3, value))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}
