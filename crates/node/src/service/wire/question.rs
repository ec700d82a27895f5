//! `ShouldAllowRequest`, decoded in place.

use std::borrow::Cow;
use std::collections::HashMap;

use smallvec::SmallVec;
use weir_core::strategy::MAX_ATTRIBUTES;

use super::{Malformed, MessageFields, costs};
use crate::limiter::{InlineLimit, Question, Shaping};

/// Texts of the previous question. The next one mostly has the same, which then need no UTF-8 check.
#[derive(Clone, Copy, Default)]
pub(crate) struct TextsBefore<'a> {
    resource: &'a str,
    strategy: &'a str,
}

impl<'a> TextsBefore<'a> {
    #[inline]
    pub(crate) fn new(question: &Question<'a>) -> Self {
        Self { resource: question.resource, strategy: question.strategy }
    }
}

/// Decodes `message` into an empty `question` as the generated type does: of a field that occurs twice the last value
/// counts. Texts are borrowed from the message.
///
/// A question is large, so it is decoded in place.
#[inline(always)]
pub(crate) fn read<'a>(
    question: &mut Question<'a>,
    message: &'a [u8],
    before: TextsBefore<'a>,
) -> Result<(), Malformed> {
    let mut fields = MessageFields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => question.resource = value.text_like(before.resource)?,
            2 => question.consumer = value.text()?,
            3 => question.strategy = value.text_like(before.strategy)?,
            4 => question.cost = value.number()?,
            5 => question.peek = value.number()? != 0,
            12 => question.headers = value.number()? != 0,
            6 => add(question, entry(value.bytes()?)?),
            7 => shaping(question).at_most = value.number()? != 0,
            8 => shaping(question).once = Shaping::under(value.text()?).once,
            13 => bring(shaping(question), value.bytes()?),
            14 => costs::add(shaping(question), value.bytes()?)?,
            15 => costs::hold_for(shaping(question), value.bytes()?)?,
            _ => {}
        }
    }
    Ok(())
}

#[cold]
fn shaping<'q, 'a>(question: &'q mut Question<'a>) -> &'q mut Shaping<'a> {
    question.shaping.get_or_insert_default()
}

/// A message that occurs twice is merged: its bytes are concatenated.
#[cold]
fn bring<'a>(shaping: &mut Shaping<'a>, bytes: &'a [u8]) {
    let bytes = match shaping.inline.take() {
        Some(InlineLimit::Encoded(before)) => Cow::Owned([&before, bytes].concat()),
        _ => Cow::Borrowed(bytes),
    };
    shaping.inline = Some(InlineLimit::Encoded(bytes));
}

/// The attributes of a generated message.
pub fn attributes(map: &HashMap<String, String>) -> SmallVec<[(&str, &str); 2]> {
    map.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// Attributes beyond the bound are added without a search for their name: such a question is rejected, and many names
/// must not cost quadratic time.
fn add<'a>(question: &mut Question<'a>, (name, value): (&'a str, &'a str)) {
    if question.attributes.len() <= MAX_ATTRIBUTES
        && let Some(known) = question.attributes.iter_mut().find(|(known, _)| *known == name)
    {
        known.1 = value;
        return;
    }
    question.attributes.push((name, value));
}

fn entry(message: &[u8]) -> Result<(&str, &str), Malformed> {
    let (mut name, mut text) = ("", "");
    let mut fields = MessageFields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => name = value.text()?,
            2 => text = value.text()?,
            _ => {}
        }
    }
    Ok((name, text))
}
