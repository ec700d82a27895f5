//! `ShouldAllowRequest`, read where it lies.

use std::collections::HashMap;
use std::time::Instant;

use smallvec::SmallVec;

use super::{Malformed, MessageFields};
use crate::limiter::{Question, Shaping};
use crate::strategy::MAX_ATTRIBUTES;

/// Reads a question as the generated type reads it: of a field that is there twice the later one counts. A text that
/// the question before it, `like`, has too is known to be one. Its texts are still in the message.
#[inline(always)] // a question is copied wherever it is passed on
pub(crate) fn question<'a>(
    message: &'a [u8],
    deadline: Option<Instant>,
    like: Option<&Question<'a>>,
) -> Result<Question<'a>, Malformed> {
    let mut question = Question::until(deadline);
    let mut fields = MessageFields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => question.resource = value.text_like(like.map_or("", |like| like.resource))?,
            2 => question.consumer = value.text()?,
            3 => question.strategy = value.text_like(like.map_or("", |like| like.strategy))?,
            4 => question.cost = value.number()?,
            5 => question.peek = value.number()? != 0,
            12 => question.headers = value.number()? != 0,
            6 => add(&mut question, entry(value.bytes()?)?),
            7 => shaping(&mut question).at_most = value.number()? != 0,
            8 => shaping(&mut question).once = Shaping::under(value.text()?).once,
            _ => {}
        }
    }
    Ok(question)
}

#[cold]
fn shaping<'q, 'a>(question: &'q mut Question<'a>) -> &'q mut Shaping<'a> {
    question.shaping.get_or_insert_default()
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
