//! The caller of a ban, and its name in the store: the strategy, the limit, and the fields of the limit's scope, in
//! order.
//!
//! ```text
//!   api:each:r10:api/orders:c3:bob
//! ```
//!
//! Each value has its length, so that no two callers share a name. Names of strategies and limits have no colon.

use std::fmt::Write as _;

use weir_core::key::Subject;
use weir_core::strategy::{Field, Limit, Strategy};
use weir_proto::v1::ConsumerBan;

use crate::timestamp::timestamp;

/// The caller of a ban.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BannedCaller {
    /// The strategy.
    pub strategy: String,
    /// The limit.
    pub limit: String,
    /// The consumer.
    pub consumer: String,
    /// The resource, if the limit counts by it; otherwise empty.
    pub resource: String,
    /// The attributes that the limit counts by, in its order.
    pub attributes: Vec<(String, String)>,
}

/// A ban, and when it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BannedUntil {
    /// The banned caller.
    pub caller: BannedCaller,
    /// End of the ban in µs since 1970, by the clock of the store.
    pub until: u64,
}

impl From<BannedUntil> for ConsumerBan {
    fn from(ban: BannedUntil) -> Self {
        let BannedUntil { caller, until } = ban;
        let BannedCaller { strategy, limit, consumer, resource, attributes } = caller;
        let attributes = attributes.into_iter().collect();
        Self { strategy, limit, consumer, resource, attributes, ends_at: Some(timestamp(until)) }
    }
}

/// The name of a caller under a limit, for `subject`.
pub(crate) fn member_of(strategy: &Strategy, limit: &Limit, subject: &Subject<'_>) -> String {
    let mut out = String::with_capacity(64);
    begin(&mut out, strategy.name(), &limit.name);
    for field in limit.scope.fields() {
        let name = if let Field::Attribute(name) = field { name } else { "" };
        part(&mut out, kind_of(field), name, subject.field(field));
    }
    out
}

impl BannedCaller {
    /// Reads a name. `None`: it is none of this version.
    pub(crate) fn read(member: &str) -> Option<Self> {
        let (strategy, rest) = member.split_once(':')?;
        let (limit, mut rest) = rest.split_once(':')?;
        let mut read = Self { strategy: strategy.to_owned(), limit: limit.to_owned(), ..Self::default() };
        while !rest.is_empty() {
            let mut letters = rest.chars();
            let kind = letters.next()?;
            rest = letters.as_str();
            let mut value = || {
                let (length, after) = rest.split_once(':')?;
                let (value, after) = after.split_at_checked(length.parse().ok()?)?;
                rest = after.strip_prefix(':').unwrap_or(after);
                Some(value.to_owned())
            };
            match kind {
                'c' => read.consumer = value()?,
                'r' => read.resource = value()?,
                'a' => read.attributes.push((value()?, value()?)),
                _ => return None,
            }
        }
        Some(read)
    }

    /// The name, where the limit counts by these fields; `None` if a field of it is missing, or there is another one.
    pub(crate) fn member(&self, limit: &Limit) -> Option<String> {
        let mut out = String::new();
        begin(&mut out, &self.strategy, &self.limit);
        for field in limit.scope.fields() {
            let (name, value) = match field {
                Field::Resource => ("", &self.resource),
                Field::Consumer => ("", &self.consumer),
                Field::Attribute(name) => {
                    (&**name, &self.attributes.iter().find(|given| *given.0 == **name)?.1)
                }
            };
            if value.is_empty() {
                return None;
            }
            part(&mut out, kind_of(field), name, value);
        }
        Some(out).filter(|out| Self::read(out).as_ref() == Some(self))
    }
}

fn begin(out: &mut String, strategy: &str, limit: &str) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{strategy}:{limit}");
}

fn part(out: &mut String, kind: char, name: &str, value: &str) {
    out.push(':');
    out.push(kind);
    if kind == 'a' {
        let _ = write!(out, "{}:{name}:", name.len());
    }
    let _ = write!(out, "{}:{value}", value.len());
}

const fn kind_of(field: &Field) -> char {
    match field {
        Field::Resource => 'r',
        Field::Consumer => 'c',
        Field::Attribute(_) => 'a',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MAX_BAN_MEMBER;
    use weir_core::algorithm::Algorithm;
    use weir_core::key::MAX_PART;
    use weir_core::strategy::{Attributes, FailurePolicy, MAX_NAME, Scope};
    use weir_units::Micros;

    fn strategy(name: &str, limit: &str, fields: &[Field]) -> Strategy {
        let algorithm = Algorithm::uniform(Micros(1)).unwrap();
        let limits = vec![Limit { name: limit.into(), scope: Scope::new(fields), algorithm }];
        Strategy::new(name, limits, true, FailurePolicy::Error).unwrap()
    }

    #[test]
    fn a_name_says_whom_it_is_about_and_the_longest_fits() {
        let attribute = "t".repeat(64);
        let fields = [Field::Resource, Field::Consumer, Field::Attribute(attribute.as_str().into())];
        let long = strategy(&"s".repeat(MAX_NAME), &"l".repeat(MAX_NAME), &fields);
        let value = ":".repeat(MAX_PART);
        let pairs = [(&*attribute, &*value)];
        let attributes = Attributes::of_pairs(&pairs);
        let subject = Subject { resource: &value, consumer: &value, group: None, attributes };
        let member = member_of(&long, &long.limits()[0], &subject);
        assert!(member.len() <= MAX_BAN_MEMBER, "{} bytes", member.len());
        let read = BannedCaller::read(&member).unwrap();
        assert_eq!((&read.resource, &read.consumer), (&value, &value));
        assert_eq!(read.attributes, [(attribute, value)]);
        assert_eq!(read.member(&long.limits()[0]), Some(member));
    }

    #[test]
    fn a_limit_has_only_the_fields_that_it_counts_by() {
        let by_consumer = strategy("s", "l", &[Field::Consumer]);
        let limit = &by_consumer.limits()[0];
        let subject = Subject { resource: "x", consumer: "bob", ..Subject::default() };
        assert_eq!(member_of(&by_consumer, limit, &subject), "s:l:c3:bob");
        let bob = BannedCaller::read("s:l:c3:bob").unwrap();
        assert_eq!(bob.member(limit).as_deref(), Some("s:l:c3:bob"));
        assert_eq!(BannedCaller { resource: "x".into(), ..bob.clone() }.member(limit), None);
        assert_eq!(BannedCaller { consumer: String::new(), ..bob }.member(limit), None);
        for bad in ["", "s", "s:l:x3:bob", "s:l:c9:bob", "s:l:c:bob", "s:l:cé:bob"] {
            assert!(BannedCaller::read(bad).is_none_or(|read| read.consumer.is_empty()), "{bad}");
        }
    }
}
