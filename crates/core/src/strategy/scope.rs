//! Scopes: the fields of a request by which a limit counts.

use std::fmt;
use std::sync::Arc;

/// The most attributes that a request may carry, and so the most that a strategy can count by.
pub const MAX_ATTRIBUTES: usize = 16;

/// A field of a request that a scope can name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The resource.
    Resource,
    /// The consumer.
    Consumer,
    /// An attribute, by its name.
    Attribute(Arc<str>),
}

/// The fields in a limit's key, in a fixed order. Empty: one counter for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope(Vec<Field>);

impl Scope {
    /// The scope of `fields`, whatever their order or repetition.
    pub fn new(fields: &[Field]) -> Self {
        let mut fields = fields.to_vec();
        fields.sort_unstable();
        fields.dedup();
        Self(fields)
    }

    /// Returns the fields, in their order in keys.
    pub fn fields(&self) -> &[Field] {
        &self.0
    }

    /// True if it names `field`.
    pub fn has(&self, field: Field) -> bool {
        self.0.contains(&field)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, field) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{field}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resource => "resource",
            Self::Consumer => "consumer",
            Self::Attribute(name) => name,
        })
    }
}
