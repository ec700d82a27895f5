//! Dynamic metadata for Envoy's other filters and its access log: the request, and the metadata of its rules.
//!
//! It is a `google.protobuf.Struct`, whose fields are written in the order of their names, as a sorted map would be.

use crate::rules::Metadata;
use crate::rules::Unit;
use smallvec::SmallVec;
use weir_node::service::put::{nested, text};

use crate::limiter::{DescriptorAsk, RateLimitAnswer, RateLimitAsk};

/// Values by name, in the order in which they are written in files.
type NamedValues<'m> = SmallVec<[(&'m str, &'m Metadata); 8]>;

/// Appends `{domain, descriptors: [{entries, limit, hitsAddend}], hitsAddend, metadata}`.
pub(super) fn write(out: &mut Vec<u8>, answer: &RateLimitAnswer<'_>, ask: &RateLimitAsk<'_>) {
    field(out, "descriptors", |out| list(out, &ask.descriptors, |out, one| descriptor(out, one, ask)));
    field(out, "domain", |out| string(out, &[ask.domain]));
    if ask.hits_addend != 0 {
        field(out, "hitsAddend", |out| double(out, f64::from(ask.hits_addend)));
    }
    let mut merged = NamedValues::new();
    for status in answer.statuses.iter().filter(|status| !status.is_over()) {
        // As in the reference, an unlimited rule adds only its status.
        let rule = status.rule().filter(|rule| rule.limit.is_some());
        merged.extend(rule.and_then(|rule| rule.metadata.as_ref()).into_iter().flat_map(values));
    }
    if !merged.is_empty() {
        field(out, "metadata", |out| map(out, merged));
    }
}

fn descriptor(out: &mut Vec<u8>, one: &DescriptorAsk, ask: &RateLimitAsk<'_>) {
    nested(out, 5, |out| {
        field(out, "entries", |out| {
            list(out, ask.entries_of(one), |out, (key, value)| string(out, &[key, "=", value]));
        });
        if let Some(hits) = one.hits {
            field(out, "hitsAddend", |out| double(out, hits as f64));
        }
        if let Some((requests_per_unit, unit)) = one.limit {
            let unit = Unit::of_wire(unit).map_or("unknown", Unit::name).to_uppercase();
            let limit = format!("requests_per_unit:{requests_per_unit} unit:{unit}");
            field(out, "limit", |out| string(out, &[&limit]));
        }
    });
}

/// The values of a map; none of anything else.
fn values(of: &Metadata) -> impl Iterator<Item = (&str, &Metadata)> {
    let values = if let Metadata::Map(values) = of { values.as_slice() } else { &[] };
    values.iter().map(|(name, value)| (&**name, value))
}

/// Appends a map. The first of one name keeps it; maps of one name are merged likewise.
fn map(out: &mut Vec<u8>, mut values_in_order: NamedValues<'_>) {
    // The sort is stable.
    values_in_order.sort_by_key(|(name, _)| *name);
    nested(out, 5, |out| {
        for same in values_in_order.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((name, first)) = same.first() else { continue };
            field(out, name, |out| match first {
                Metadata::Map(_) => map(out, same.iter().flat_map(|(_, value)| values(value)).collect()),
                first => value(out, first),
            });
        }
    });
}

fn value(out: &mut Vec<u8>, value_of: &Metadata) {
    match value_of {
        Metadata::Null => out.extend_from_slice(&[1 << 3, 0]),
        Metadata::Bool(truth) => out.extend_from_slice(&[4 << 3, u8::from(*truth)]),
        Metadata::Number(number) => double(out, *number),
        Metadata::Text(text) => string(out, &[text]),
        Metadata::List(values) => list(out, values, value),
        Metadata::Map(_) => map(out, values(value_of).collect()),
    }
}

/// Appends a field of a struct: an entry of a map from a name to a value, which `write` appends.
fn field(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    nested(out, 1, |out| {
        text(out, 1, name);
        nested(out, 2, write);
    });
}

fn string(out: &mut Vec<u8>, parts: &[&str]) {
    nested(out, 3, |out| parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes())));
}

fn double(out: &mut Vec<u8>, number: f64) {
    out.push(2 << 3 | 1);
    out.extend_from_slice(&number.to_le_bytes());
}

fn list<T>(out: &mut Vec<u8>, items: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    nested(out, 6, |out| items.iter().for_each(|item| nested(out, 1, |out| write(out, item))));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prost::Message as _;
    use prost_types::value::Kind;
    use prost_types::{ListValue, Struct, Value};

    use super::*;

    #[test]
    fn metadata_is_written_as_the_generated_types_write_it() {
        let one = |number: f64| Metadata::Number(number);
        let inner = |name: &str, value| Metadata::Map(vec![(name.into(), value)]);
        let long = "x".repeat(200);
        let all = [
            ("z", Metadata::Null),
            ("a", inner("b", one(1.0))),
            ("", Metadata::Text("".into())),
            ("a", one(2.0)),
            ("a", Metadata::Map(vec![("b".into(), one(3.0)), ("a".into(), Metadata::Bool(false))])),
            ("z", inner("never", one(4.0))),
            (
                "l",
                Metadata::List(vec![Metadata::Null, one(-0.5), Metadata::List(vec![]), inner("n", one(0.0))]),
            ),
            (&long, Metadata::Text(long.as_str().into())),
            ("twice", Metadata::Map(vec![("n".into(), one(5.0)), ("n".into(), one(6.0))])),
            ("none", Metadata::Map(vec![])),
        ];
        let mut out = Vec::new();
        map(&mut out, all.iter().map(|(name, value)| (*name, value)).collect());
        let mut expected = Struct::default();
        let owned = all.iter().map(|(name, value)| ((*name).into(), value.clone()));
        merge(&mut expected, &owned.collect::<Vec<_>>());
        assert_eq!(expected.fields.len(), 7);
        assert_eq!(out, Value { kind: Some(Kind::StructValue(expected)) }.encode_to_vec());
    }

    fn merge(into: &mut Struct, values: &[(Box<str>, Metadata)]) {
        for (name, value) in values {
            match (into.fields.get_mut(&**name), value) {
                (None, value) => {
                    into.fields.insert(name.to_string(), wire(value));
                }
                (Some(Value { kind: Some(Kind::StructValue(inner)) }), Metadata::Map(values)) => {
                    merge(inner, values);
                }
                (Some(_), _) => {}
            }
        }
    }

    fn wire(value: &Metadata) -> Value {
        let kind = match value {
            Metadata::Null => Kind::NullValue(0),
            Metadata::Bool(value) => Kind::BoolValue(*value),
            Metadata::Number(value) => Kind::NumberValue(*value),
            Metadata::Text(value) => Kind::StringValue(value.to_string()),
            Metadata::List(values) => {
                Kind::ListValue(ListValue { values: values.iter().map(wire).collect() })
            }
            Metadata::Map(values) => {
                let mut inner = Struct { fields: BTreeMap::new() };
                merge(&mut inner, values);
                Kind::StructValue(inner)
            }
        };
        Value { kind: Some(kind) }
    }
}
