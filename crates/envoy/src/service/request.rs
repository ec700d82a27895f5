//! Envoy's `RateLimitRequest`, decoded in place.

use std::time::Instant;

use smallvec::SmallVec;
use weir_node::access::Rights;
use weir_node::service::{Malformed, MessageFields};

use crate::limiter::{DescriptorAsk, MAX_DESCRIPTORS, MAX_ENTRIES, RateLimitAsk};

/// Decodes as the generated type does: of a field that occurs twice the last value counts, and messages that occur
/// twice are merged. Reads at most one item beyond each bound, which is enough to reject the request.
pub(super) fn read<'a>(
    message: &'a [u8],
    deadline: Option<Instant>,
    rights: Rights<'a>,
) -> Result<RateLimitAsk<'a>, Malformed> {
    let mut ask = RateLimitAsk { rights, domain: "", descriptors: SmallVec::new(), hits_addend: 0, deadline };
    let mut fields = MessageFields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => ask.domain = value.text()?,
            2 => {
                let descriptor = descriptor(value.bytes()?)?;
                if ask.descriptors.len() <= MAX_DESCRIPTORS {
                    ask.descriptors.push(descriptor);
                }
            }
            3 => ask.hits_addend = value.number()? as u32,
            _ => {}
        }
    }
    Ok(ask)
}

fn descriptor(message: &[u8]) -> Result<DescriptorAsk<'_>, Malformed> {
    let mut ask = DescriptorAsk { entries: SmallVec::new(), limit: None, hits: None, refund: false };
    let mut fields = MessageFields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => {
                let entry = entry(value.bytes()?)?;
                if ask.entries.len() <= MAX_ENTRIES {
                    ask.entries.push(entry);
                }
            }
            2 => ask.limit = Some(limit(value.bytes()?, ask.limit.unwrap_or_default())?),
            3 => ask.hits = Some(wrapped(value.bytes()?, ask.hits.unwrap_or_default())?),
            4 => ask.refund = value.number()? != 0,
            _ => {}
        }
    }
    Ok(ask)
}

fn entry(message: &[u8]) -> Result<(&str, &str), Malformed> {
    let (mut key, mut text) = ("", "");
    let mut fields = MessageFields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => key = value.text()?,
            2 => text = value.text()?,
            _ => {}
        }
    }
    Ok((key, text))
}

/// Numbers too large for their type are truncated, as everywhere in protobuf.
fn limit(message: &[u8], (mut requests, mut unit): (u32, i32)) -> Result<(u32, i32), Malformed> {
    let mut fields = MessageFields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => requests = value.number()? as u32,
            2 => unit = value.number()? as i32,
            _ => {}
        }
    }
    Ok((requests, unit))
}

fn wrapped(message: &[u8], mut wrapped: u64) -> Result<u64, Malformed> {
    let mut fields = MessageFields::of(message);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            wrapped = value.number()?;
        }
    }
    Ok(wrapped)
}
