//! Attributes: fields of a request that only the configuration knows by name, such as a region.

use std::collections::HashMap;

use super::{Field, MAX_ATTRIBUTES, Scope, StrategyError};

/// The longest name of an attribute that a scope may have, in bytes.
const MAX_ATTRIBUTE_NAME: usize = 64;

/// The attributes of one request, borrowed from wherever they arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes<'a>(AttributeSource<'a>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttributeSource<'a> {
    Map(&'a HashMap<String, String>),
    /// Each name once.
    Pairs(&'a [(&'a str, &'a str)]),
}

impl Default for AttributeSource<'_> {
    fn default() -> Self {
        Self::Pairs(&[])
    }
}

impl<'a> Attributes<'a> {
    /// No attributes.
    pub const NONE: Self = Self(AttributeSource::Pairs(&[]));

    /// Creates the attributes of a map.
    pub const fn new(map: &'a HashMap<String, String>) -> Self {
        Self(AttributeSource::Map(map))
    }

    /// Creates the attributes of a list that has each name once.
    pub const fn of_pairs(pairs: &'a [(&'a str, &'a str)]) -> Self {
        Self(AttributeSource::Pairs(pairs))
    }

    /// The value of `name`; empty if there is none, which counts as none everywhere.
    pub fn get(&self, name: &str) -> &'a str {
        match self.0 {
            AttributeSource::Map(map) => map.get(name).map_or("", String::as_str),
            AttributeSource::Pairs(pairs) => {
                pairs.iter().find(|pair| pair.0 == name).map_or("", |pair| pair.1)
            }
        }
    }

    /// All names and values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let (map, pairs) = match self.0 {
            AttributeSource::Map(map) => (Some(map), [].as_slice()),
            AttributeSource::Pairs(pairs) => (None, pairs),
        };
        let map = map.into_iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
        map.chain(pairs.iter().copied())
    }

    /// Returns the number of attributes.
    pub fn len(&self) -> usize {
        match self.0 {
            AttributeSource::Map(map) => map.len(),
            AttributeSource::Pairs(pairs) => pairs.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An attribute that a request must carry, and the first limit that counts by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    /// The attribute.
    pub attribute: Box<str>,
    /// The name of the limit.
    pub limit: Box<str>,
}

/// The attributes that limits of these names and scopes count by, each once.
pub(super) fn needed<'l>(
    limits: impl Iterator<Item = (&'l str, &'l Scope)>,
) -> Result<Box<[Needed]>, StrategyError> {
    let mut needed: Vec<Needed> = Vec::new();
    for (limit, scope) in limits {
        for field in scope.fields() {
            let Field::Attribute(name) = field else { continue };
            if !is_attribute_name(name) {
                return Err(StrategyError::Attribute(name.to_string()));
            }
            if !needed.iter().any(|one| *one.attribute == **name) {
                needed.push(Needed { attribute: (&**name).into(), limit: limit.into() });
            }
        }
    }
    match needed.len() {
        count if count > MAX_ATTRIBUTES => Err(StrategyError::TooManyAttributes(count)),
        _ => Ok(needed.into()),
    }
}

/// True if `name` can be an attribute of a scope: `[a-z][a-z0-9_-]{0,63}`, and not a field's own name.
pub fn is_attribute_name(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    name.len() <= MAX_ATTRIBUTE_NAME
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(known)
        && !["resource", "consumer"].contains(&name)
}
