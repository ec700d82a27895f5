//! The outline of a resource before it is decoded: the domain, the name, and the number of rules.
//!
//! A message of two bytes becomes hundreds in memory, so rules are counted first.

use crate::files::RuleCount;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_types::Any;

use super::TYPE_URL;

/// The depth at which the decoder ends.
const DECODED: usize = 100;

/// Fields of a resource: its name, its domain and its descriptors.
const NAME: u32 = 1;
const DOMAIN: u32 = 2;
const DESCRIPTORS: u32 = 3;

/// Fields of a descriptor: its limit, and the descriptors below it.
const RATE_LIMIT: u32 = 3;
const BELOW: u32 = 4;

/// A resource that is not decoded yet.
#[derive(Debug)]
pub(super) struct ResourceOutline<'r> {
    pub(super) domain: &'r str,
    pub(super) name: &'r str,
    pub(super) count: RuleCount,
    pub(super) bytes: &'r [u8],
}

impl<'r> ResourceOutline<'r> {
    /// The outline of a resource, or why it cannot be decoded.
    pub(super) fn new(resource: &'r Any) -> Result<Self, String> {
        if resource.type_url != TYPE_URL {
            return Err(format!("its type is {:?}", super::descriptors::shortened(&resource.type_url)));
        }
        Self::of_bytes(&resource.value).ok_or_else(|| "it is not Protobuf".to_owned())
    }

    fn of_bytes(bytes: &'r [u8]) -> Option<Self> {
        let mut outline = Self { domain: "", name: "", count: RuleCount::default(), bytes };
        let mut rest = bytes;
        while let Some((tag, inner)) = next(&mut rest)? {
            match (tag, inner) {
                (NAME, Some(inner)) => outline.name = std::str::from_utf8(inner).ok()?,
                (DOMAIN, Some(inner)) => outline.domain = std::str::from_utf8(inner).ok()?,
                (DESCRIPTORS, Some(inner)) => count(inner, 0, &mut outline.count)?,
                _ => {}
            }
        }
        Some(outline)
    }
}

/// Counts a descriptor and those below it.
fn count(mut descriptor: &[u8], depth: usize, total: &mut RuleCount) -> Option<()> {
    if depth > DECODED {
        return None;
    }
    let mut has_limit = false;
    while let Some((tag, inner)) = next(&mut descriptor)? {
        match (tag, inner) {
            (RATE_LIMIT, Some(_)) => has_limit = true,
            (BELOW, Some(inner)) => count(inner, depth + 1, total)?,
            _ => {}
        }
    }
    total.add(has_limit);
    Some(())
}

/// A field's number, and its bytes if it has a length.
type FieldOfMessage<'m> = (u32, Option<&'m [u8]>);

/// The next field of a message, with its bytes if it has a length; `Some(None)` at the end, and `None` if the message is
/// not Protobuf.
fn next<'m>(message: &mut &'m [u8]) -> Option<Option<FieldOfMessage<'m>>> {
    if message.is_empty() {
        return Some(None);
    }
    let (tag, wire) = decode_key(message).ok()?;
    if wire != WireType::LengthDelimited {
        skip_field(wire, tag, message, DecodeContext::default()).ok()?;
        return Some(Some((tag, None)));
    }
    let length = usize::try_from(decode_varint(message).ok()?).ok()?;
    let (inner, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(Some((tag, Some(inner))))
}
