//! Dynamic metadata for Envoy's other filters and its access log: the request, and the metadata of its rules.

use std::collections::BTreeMap;

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use weir_core::envoy::Metadata;
use weir_core::envoy::Unit;

use crate::limiter::{DescriptorAsk, RateLimitAnswer, RateLimitAsk};

/// `{domain, descriptors: [{entries, limit, hitsAddend}], hitsAddend, metadata}`.
pub(super) fn of(answer: &RateLimitAnswer<'_>, ask: &RateLimitAsk<'_>) -> Struct {
    let mut fields = BTreeMap::new();
    fields.insert("domain".to_owned(), text(ask.domain));
    fields.insert("descriptors".to_owned(), list(ask.descriptors.iter().map(descriptor).collect()));
    if ask.hits_addend != 0 {
        fields.insert("hitsAddend".to_owned(), number(f64::from(ask.hits_addend)));
    }
    let mut merged = Struct::default();
    for status in answer.statuses.iter().filter(|status| !status.is_over()) {
        // As in the reference, an unlimited rule adds only its status.
        let rule = status.rule().filter(|rule| rule.limit.is_some());
        if let Some(Metadata::Map(values)) = rule.and_then(|rule| rule.metadata.as_ref()) {
            merge(&mut merged, values);
        }
    }
    if !merged.fields.is_empty() {
        fields.insert("metadata".to_owned(), Value { kind: Some(Kind::StructValue(merged)) });
    }
    Struct { fields }
}

fn descriptor(ask: &DescriptorAsk<'_>) -> Value {
    let entries = ask.entries.iter().map(|(key, value)| text(&format!("{key}={value}"))).collect();
    let mut fields = BTreeMap::from([("entries".to_owned(), list(entries))]);
    if let Some((requests_per_unit, unit)) = ask.limit {
        let unit = Unit::of_wire(unit).map_or("unknown", Unit::name).to_uppercase();
        let limit = format!("requests_per_unit:{requests_per_unit} unit:{unit}");
        fields.insert("limit".to_owned(), text(&limit));
    }
    if let Some(hits) = ask.hits {
        fields.insert("hitsAddend".to_owned(), number(hits as f64));
    }
    Value { kind: Some(Kind::StructValue(Struct { fields })) }
}

/// The first rule that has a value keeps it; values within values are merged likewise.
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
        Metadata::List(values) => return list(values.iter().map(wire).collect()),
        Metadata::Map(values) => {
            let mut inner = Struct::default();
            merge(&mut inner, values);
            Kind::StructValue(inner)
        }
    };
    Value { kind: Some(kind) }
}

fn text(text: &str) -> Value {
    Value { kind: Some(Kind::StringValue(text.to_owned())) }
}

fn number(number: f64) -> Value {
    Value { kind: Some(Kind::NumberValue(number)) }
}

fn list(values: Vec<Value>) -> Value {
    Value { kind: Some(Kind::ListValue(ListValue { values })) }
}
