//! `ShouldAllowRequest`, read where it lies.

use std::borrow::Cow;
use std::collections::HashMap;

use smallvec::SmallVec;
use weir_core::strategy::MAX_ATTRIBUTES;

use super::{Malformed, MessageFields};
use crate::limiter::{InlineLimit, Question, Shaping};

/// The texts of the question before, which the next one mostly has too. Then they are known to be text.
#[derive(Clone, Copy, Default)]
pub(crate) struct TextsBefore<'a> {
    resource: &'a str,
    strategy: &'a str,
}

impl<'a> TextsBefore<'a> {
    /// Those of `question`.
    #[inline]
    pub(crate) fn of(question: &Question<'a>) -> Self {
        Self { resource: question.resource, strategy: question.strategy }
    }
}

/// Reads into `question`, which is about nothing yet, what `message` asks. It reads as the generated type does: of a
/// field that is there twice the later one counts. Its texts are still in the message.
///
/// A question is large, so it is read in the place where it stays.
#[inline(always)]
pub(crate) fn read<'a>(
    question: &mut Question<'a>,
    message: &'a [u8],
    before: TextsBefore<'a>,
) -> Result<(), Malformed> {
    let mut fields = MessageFields::of(message);
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
            _ => {}
        }
    }
    Ok(())
}

#[cold]
fn shaping<'q, 'a>(question: &'q mut Question<'a>) -> &'q mut Shaping<'a> {
    question.shaping.get_or_insert_default()
}

/// A message that is there twice is what both say together, as their bytes are.
#[cold]
fn bring<'a>(shaping: &mut Shaping<'a>, bytes: &'a [u8]) {
    let bytes = match shaping.inline.take() {
        Some(InlineLimit::Encoded(before)) => Cow::Owned([&before, bytes].concat()),
        _ => Cow::Borrowed(bytes),
    };
    shaping.inline = Some(InlineLimit::Encoded(bytes));
}

/// The attributes of a generated message.
pub(crate) fn attributes(map: &HashMap<String, String>) -> SmallVec<[(&str, &str); 2]> {
    map.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// Beyond the bound nothing is looked for: such a question is refused, so that many names cannot
/// make us compare each with all others.
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
    let mut fields = MessageFields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => name = value.text()?,
            2 => text = value.text()?,
            _ => {}
        }
    }
    Ok((name, text))
}
