//! Named costs and the hold of a `ShouldAllowRequest`, decoded in place.

use weir_core::algorithm::MAX_LIMITS;

use super::{Malformed, MessageFields};
use crate::limiter::{NamedCost, Shaping};

/// Adds an entry of `costs`. Of a name that occurs twice the last entry counts. Names beyond the bound are added without
/// a search: such a question is rejected.
#[cold]
pub(super) fn add<'a>(shaping: &mut Shaping<'a>, entry: &'a [u8]) -> Result<(), Malformed> {
    let mut cost = NamedCost { name: "", cost: 0, at_least: None };
    let mut fields = MessageFields::new(entry);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => cost.name = value.text()?,
            2 => read(&mut cost, value.bytes()?)?,
            _ => {}
        }
    }
    let has_room = shaping.costs.len() <= MAX_LIMITS;
    match shaping.costs.iter_mut().find(|known| has_room && known.name == cost.name) {
        Some(known) => *known = cost,
        None => shaping.costs.push(cost),
    }
    Ok(())
}

/// Reads `hold_for`, as it was sent. A message that occurs twice is merged.
#[cold]
pub(super) fn hold_for(shaping: &mut Shaping<'_>, span: &[u8]) -> Result<(), Malformed> {
    let (seconds, nanos) = shaping.hold_for.get_or_insert_default();
    let mut fields = MessageFields::new(span);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => *seconds = value.number()?.cast_signed(),
            2 => *nanos = value.number()?.cast_signed() as i32,
            _ => {}
        }
    }
    Ok(())
}

fn read(cost: &mut NamedCost<'_>, message: &[u8]) -> Result<(), Malformed> {
    let mut fields = MessageFields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => cost.cost = value.number()?,
            2 => cost.at_least = Some(value.number()?),
            _ => {}
        }
    }
    Ok(())
}
