//! Kinds of keys and values, and their representation in a schema.

use serde_json::{Map, Value, json};

use super::super::table::{Rows, Setting, ValueKind};

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
    /// Sets the default, as a file would write it.
    pub(super) const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    pub(super) fn described(&self) -> Value {
        described(&self.kind, self.about, self.default)
    }
}

fn described(kind: &ValueKind, about: &str, default: Option<&str>) -> Value {
    let mut value = value(kind);
    value["description"] = match kind {
        // A schema cannot express these bounds, so the description does.
        ValueKind::Span(..) | ValueKind::Size(..) => {
            format!("{}; {}.", about.trim_end_matches('.'), kind.bounds()).into()
        }
        _ => about.into(),
    };
    if let Some(default) = default {
        value["default"] = match kind {
            ValueKind::Boolean | ValueKind::Count(..) | ValueKind::Part | ValueKind::Thousandths(..) => {
                default.parse().unwrap_or_else(|_| default.into())
            }
            _ => default.into(),
        };
    }
    value
}

/// Returns the schema of a mapping without other keys. An empty value is an empty mapping.
pub(super) fn mapping(keys: &[Key]) -> Value {
    let required = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    mapping_of(keys.iter().map(|key| (key.name.to_owned(), key.described())).collect(), required)
}

/// Returns the schema of a section of the table of settings.
pub(super) fn section(rows: Rows) -> Value {
    section_of(&rows())
}

/// Returns the schema of a mapping with these settings.
pub(crate) fn section_of(rows: &[Setting]) -> Value {
    let required = rows.iter().filter(|row| row.required).map(|row| row.key).collect();
    let row = |row: &Setting| (row.key.to_owned(), described(&row.values, row.about, row.default.as_deref()));
    mapping_of(rows.iter().map(row).collect(), required)
}

fn mapping_of(properties: Map<String, Value>, required: Vec<&str>) -> Value {
    let kind = if required.is_empty() { json!(["object", "null"]) } else { json!("object") };
    json!({ "type": kind, "properties": properties, "required": required, "additionalProperties": false })
}

/// Returns the schema of a partition's share of a limit.
pub(super) fn share() -> Value {
    value(&ValueKind::Part)
}

fn value(kind: &ValueKind) -> Value {
    match kind {
        ValueKind::Duration | ValueKind::Span(..) => json!({ "$ref": "#/$defs/duration" }),
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
        ValueKind::Positive => json!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0 },
            { "type": "string", "pattern": format!("^{DIGITS}(\\.{DIGITS})?$") },
        ] }),
        ValueKind::Thousandths(min, max) => json!({ "anyOf": [
            { "type": "number", "minimum": min, "maximum": max },
            { "type": "string", "pattern": format!("^{DIGITS}(\\.{DIGITS})?$") },
        ] }),
        ValueKind::Boolean => json!({ "type": "boolean" }),
        ValueKind::Choice(words) => json!({ "enum": words }),
        ValueKind::Words(words) => json!({ "enum": words }),
        // The parser accepts any scalar as text. A text has at most as many characters as bytes.
        ValueKind::Text(min, max) => {
            json!({ "type": ["string", "number", "boolean"], "minLength": min, "maxLength": max })
        }
        ValueKind::Pattern(pattern) => json!({ "type": "string", "pattern": pattern }),
        ValueKind::Set(item, min, max) => {
            let kind = if *min == 0 { json!(["array", "null"]) } else { json!("array") };
            json!({ "type": kind, "items": value(item), "minItems": min, "maxItems": max, "uniqueItems": true })
        }
        ValueKind::Items(item, min, max) => {
            json!({ "type": "array", "items": value(item), "minItems": min, "maxItems": max })
        }
        // 1 and 1.0 are equal in a schema and two names to the parser, so uniqueness is not required.
        ValueKind::List(item) => json!({ "type": ["array", "null"], "items": value(item) }),
        ValueKind::Section(rows) => section(*rows),
    }
}

/// The parser accepts single `_` between digits. For YAML such a number is text.
const DIGITS: &str = "[0-9]+(_[0-9]+)*";

/// Returns the regular expression of a duration.
pub(super) fn duration() -> String {
    let parts = ["w", "d", "h", "m", "s", "ms", "us"].map(|unit| format!("({DIGITS}{unit})?")).concat();
    format!("^{parts}$")
}

/// Returns the regular expression of a rate.
pub(super) fn rate() -> String {
    format!("^{DIGITS}/(w|d|h|m|s|ms|us|{DIGITS}[a-z].*)$")
}
