//! Envoy's `RateLimitRequest`, decoded in place.

use weir_node::service::{Malformed, MessageFields};

use crate::limiter::{DescriptorAsk, MAX_DESCRIPTORS, MAX_ENTRIES, RateLimitAsk};

/// Decodes into an empty `ask` as the generated type does: of a field that occurs twice the last value counts, and
/// messages that occur twice are merged. Reads at most one item beyond each bound, which is enough to reject the request.
///
/// A request is large, so it is decoded in place.
pub(super) fn read<'a>(ask: &mut RateLimitAsk<'a>, message: &'a [u8]) -> Result<(), Malformed> {
    let mut fields = MessageFields::new(message);
    while fields.left() > 0
        && let Some((number, value)) = fields.next()?
    {
        match number {
            1 => ask.domain = value.text()?,
            2 => {
                let start = ask.entries.len();
                let one = descriptor(ask, value.bytes()?)?;
                if ask.descriptors.len() <= MAX_DESCRIPTORS {
                    ask.descriptors.push(one);
                } else {
                    ask.entries.truncate(start);
                }
            }
            3 => ask.hits_addend = value.number()? as u32,
            _ => {}
        }
    }
    Ok(())
}

/// Appends the entries of a descriptor, and returns the rest of it.
#[inline]
fn descriptor<'a>(ask: &mut RateLimitAsk<'a>, message: &'a [u8]) -> Result<DescriptorAsk, Malformed> {
    let start = ask.entries.len();
    let mut one = DescriptorAsk::default();
    let mut fields = MessageFields::new(message);
    while fields.left() > 0
        && let Some((number, value)) = fields.next()?
    {
        match number {
            1 => {
                let entry = entry(value.bytes()?)?;
                if ask.entries.len() - start <= MAX_ENTRIES {
                    ask.entries.push(entry);
                }
            }
            2 => one.limit = Some(limit(value.bytes()?, one.limit.unwrap_or_default())?),
            3 => one.hits = Some(wrapped(value.bytes()?, one.hits.unwrap_or_default())?),
            4 => one.refund = value.number()? != 0,
            _ => {}
        }
    }
    one.entries = start..ask.entries.len();
    Ok(one)
}

#[inline]
fn entry(message: &[u8]) -> Result<(&str, &str), Malformed> {
    let (mut key, mut text) = ("", "");
    let mut fields = MessageFields::new(message);
    while fields.left() > 0
        && let Some((number, value)) = fields.next()?
    {
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
    let mut fields = MessageFields::new(message);
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
    let mut fields = MessageFields::new(message);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            wrapped = value.number()?;
        }
    }
    Ok(wrapped)
}
