//! `ShouldAllowRequest`, read where it lies.

use std::time::Instant;

use smallvec::SmallVec;

use super::{Malformed, MessageFields};
use crate::limiter::Ask;
use crate::service::DEFAULT_COST;
use crate::strategy::{Attributes, MAX_ATTRIBUTES};

/// One question; its texts are still in the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WireQuestion<'a> {
    resource: &'a str,
    consumer: &'a str,
    strategy: &'a str,
    cost: u64,
    peek: bool,
    attributes: SmallVec<[(&'a str, &'a str); 2]>,
}

impl<'a> WireQuestion<'a> {
    /// As the generated type reads it: of a field that is there twice the later one counts. A text that
    /// the question before it, `like`, has too is known to be one.
    #[inline]
    pub(crate) fn read(message: &'a [u8], like: Option<&Self>) -> Result<Self, Malformed> {
        let mut question = WireQuestion {
            resource: "",
            consumer: "",
            strategy: "",
            cost: DEFAULT_COST,
            peek: false,
            attributes: SmallVec::new(),
        };
        let mut fields = MessageFields::of(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => question.resource = value.text_like(like.map_or("", |like| like.resource))?,
                2 => question.consumer = value.text()?,
                3 => question.strategy = value.text_like(like.map_or("", |like| like.strategy))?,
                4 => question.cost = value.number()?,
                5 => question.peek = value.number()? != 0,
                6 => question.add(entry(value.bytes()?)?),
                _ => {}
            }
        }
        Ok(question)
    }

    pub(crate) const fn cost(&self) -> u64 {
        self.cost
    }

    /// What it asks of the limiter.
    #[inline]
    pub(crate) fn ask(&self, deadline: Option<Instant>) -> Ask<'_> {
        Ask {
            resource: self.resource,
            consumer: self.consumer,
            strategy: self.strategy,
            cost: self.cost,
            peek: self.peek,
            attributes: Attributes::of_pairs(&self.attributes),
            deadline,
        }
    }

    /// Beyond the bound nothing is looked for: such a question is refused, so that many names cannot
    /// make us compare each with all others.
    fn add(&mut self, (name, value): (&'a str, &'a str)) {
        if self.attributes.len() <= MAX_ATTRIBUTES
            && let Some(known) = self.attributes.iter_mut().find(|(known, _)| *known == name)
        {
            known.1 = value;
            return;
        }
        self.attributes.push((name, value));
    }
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
