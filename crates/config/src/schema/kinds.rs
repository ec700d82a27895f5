//! What keys and values are, and how a schema says it.

use serde_json::{Map, Value, json};

/// What a value may be.
pub(super) enum ValueKind {
    Duration,
    Rate,
    /// A whole number, from one bound to the other.
    Count(u64, u64),
    /// A number of bytes, from one bound to the other.
    Size(usize, usize),
    Boolean,
    /// A part of one.
    Part,
    /// A number with at most three digits after the point, from one bound to the other.
    Thousandths(f64, f64),
    Choice(&'static [&'static str]),
    /// Text of so many bytes.
    Text(usize, usize),
    /// Text of a pattern.
    Pattern(&'static str),
    /// A list of so many items, none of them twice.
    Set(&'static ValueKind, usize, usize),
    /// A list of any length.
    List(&'static ValueKind),
    /// A mapping of such keys.
    Mapping(&'static [Key]),
    /// What stands in `$defs` under a name.
    Defined(&'static str),
}

/// A key of a mapping.
pub(super) struct Key {
    pub(super) name: &'static str,
    required: bool,
    kind: ValueKind,
    default: Option<&'static str>,
    about: &'static str,
}

pub(super) const fn must(name: &'static str, kind: ValueKind, about: &'static str) -> Key {
    Key { name, required: true, kind, default: None, about }
}

pub(super) const fn may(name: &'static str, kind: ValueKind, about: &'static str) -> Key {
    Key { name, required: false, kind, default: None, about }
}

impl Key {
    /// What it is when nobody writes it, as it would be written.
    pub(super) const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    pub(super) fn described(&self) -> Value {
        let mut value = value(&self.kind);
        value["description"] = self.about.into();
        if let Some(default) = self.default {
            value["default"] = match self.kind {
                ValueKind::Boolean | ValueKind::Count(..) | ValueKind::Part | ValueKind::Thousandths(..) => {
                    default.parse().unwrap_or_else(|_| default.into())
                }
                _ => default.into(),
            };
        }
        value
    }
}

/// A mapping without other keys. Nothing written is an empty one.
pub(super) fn mapping(keys: &[Key]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), key.described())).collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let kind = if required.is_empty() { json!(["object", "null"]) } else { json!("object") };
    json!({ "type": kind, "properties": properties, "required": required, "additionalProperties": false })
}

/// A part of a limit.
pub(super) fn share() -> Value {
    value(&ValueKind::Part)
}

fn value(kind: &ValueKind) -> Value {
    match kind {
        ValueKind::Duration => json!({ "$ref": "#/$defs/duration" }),
        ValueKind::Rate => json!({ "$ref": "#/$defs/rate" }),
        ValueKind::Defined(name) => json!({ "$ref": format!("#/$defs/{name}") }),
        ValueKind::Count(min, max) => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "type": "string", "pattern": "^[0-9]+(_[0-9]+)+$" },
        ] }),
        ValueKind::Size(min, max) => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "type": "string", "pattern": format!("^{DIGITS}(KiB|MiB|GiB|KB|MB|GB)?$") },
        ] }),
        ValueKind::Part => json!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": format!("^{DIGITS}(\\.{DIGITS})?$") },
        ] }),
        ValueKind::Thousandths(min, max) => json!({ "anyOf": [
            { "type": "number", "minimum": min, "maximum": max },
            { "type": "string", "pattern": format!("^{DIGITS}(\\.{DIGITS})?$") },
        ] }),
        ValueKind::Boolean => json!({ "type": "boolean" }),
        ValueKind::Choice(words) => json!({ "enum": words }),
        // The parser takes any single value for text. Characters are at most as many as bytes.
        ValueKind::Text(min, max) => {
            json!({ "type": ["string", "number", "boolean"], "minLength": min, "maxLength": max })
        }
        ValueKind::Pattern(pattern) => json!({ "type": "string", "pattern": pattern }),
        ValueKind::Set(item, min, max) => {
            let kind = if *min == 0 { json!(["array", "null"]) } else { json!("array") };
            json!({ "type": kind, "items": value(item), "minItems": min, "maxItems": max, "uniqueItems": true })
        }
        // 1 and 1.0 are the same to a schema and two names to the parser, so nothing is said of twice.
        ValueKind::List(item) => json!({ "type": ["array", "null"], "items": value(item) }),
        ValueKind::Mapping(keys) => mapping(keys),
    }
}

/// The parser takes single `_` between digits; where YAML itself does not, such a number is text.
const DIGITS: &str = "[0-9]+(_[0-9]+)*";

/// The pattern of a duration.
pub(super) fn duration() -> String {
    let parts = ["w", "d", "h", "m", "s", "ms", "us"].map(|unit| format!("({DIGITS}{unit})?")).concat();
    format!("^{parts}$")
}

/// The pattern of a rate.
pub(super) fn rate() -> String {
    format!("^{DIGITS}/(w|d|h|m|s|ms|us|{DIGITS}[a-z].*)$")
}
