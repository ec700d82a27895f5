//! The schemas of messages and enums.

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use serde_json::{Map, Value, json};

use super::comments::Comments;

/// The schemas of one package, by their full names.
pub(super) struct Schemas(Map<String, Value>);

/// Returns the reference to the schema of a message or an enum.
pub(super) fn reference(name: &str) -> String {
    format!("#/components/schemas/{}", name.trim_start_matches('.'))
}

impl Schemas {
    pub(super) fn all(set: &FileDescriptorSet, package: &str) -> Value {
        let mut schemas = Self(Map::new());
        schemas.0.insert("connect.Error".to_owned(), error());
        for file in set.file.iter().filter(|file| file.package() == package) {
            let comments = Comments::new(file);
            for (index, message) in file.message_type.iter().enumerate() {
                schemas.message(package, message, &comments, &[4, index as i32]);
            }
            for (index, it) in file.enum_type.iter().enumerate() {
                schemas.enumeration(package, it, &comments, &[5, index as i32]);
            }
        }
        Value::Object(schemas.0)
    }

    fn message(&mut self, scope: &str, message: &DescriptorProto, comments: &Comments<'_>, path: &[i32]) {
        let name = format!("{scope}.{}", message.name());
        let below = |kind: i32, index: usize| [path, &[kind, index as i32]].concat();
        for (index, inner) in message.nested_type.iter().enumerate() {
            if !inner.options.as_ref().is_some_and(|options| options.map_entry()) {
                self.message(&name, inner, comments, &below(3, index));
            }
        }
        for (index, inner) in message.enum_type.iter().enumerate() {
            self.enumeration(&name, inner, comments, &below(4, index));
        }
        let mut properties = Map::new();
        for (index, field) in message.field.iter().enumerate() {
            let mut schema = field_schema(message, field);
            schema["description"] = json!(comments.at(&below(2, index)));
            properties.insert(field.json_name().to_owned(), schema);
        }
        let about = comments.at(path);
        self.0.insert(name, json!({ "type": "object", "description": about, "properties": properties }));
    }

    fn enumeration(&mut self, scope: &str, it: &EnumDescriptorProto, comments: &Comments<'_>, path: &[i32]) {
        let names: Vec<&str> = it.value.iter().map(|value| value.name()).collect();
        let mut about = comments.at(path);
        for (index, value) in it.value.iter().enumerate() {
            let comment = comments.at(&[path, &[2, index as i32]].concat());
            if !comment.is_empty() {
                about.push_str(&format!("\n* `{}`: {comment}", value.name()));
            }
        }
        // Requests may have the number, and so has an answer that is newer than this description.
        let schema =
            json!({ "anyOf": [{ "enum": names }, { "type": "integer" }], "description": about.trim() });
        self.0.insert(format!("{scope}.{}", it.name()), schema);
    }
}

fn field_schema(message: &DescriptorProto, field: &FieldDescriptorProto) -> Value {
    if field.label() != Label::Repeated {
        return value_schema(field);
    }
    let entry = message.nested_type.iter().find(|inner| {
        inner.options.as_ref().is_some_and(|options| options.map_entry())
            && field.type_name().ends_with(&format!(".{}", inner.name()))
    });
    match entry.and_then(|entry| entry.field.get(1)) {
        Some(value) => json!({ "type": "object", "additionalProperties": value_schema(value) }),
        None => json!({ "type": "array", "items": value_schema(field) }),
    }
}

fn value_schema(field: &FieldDescriptorProto) -> Value {
    match field.r#type() {
        Type::Bool => json!({ "type": "boolean" }),
        Type::Int32 | Type::Sint32 | Type::Sfixed32 => json!({ "type": "integer", "format": "int32" }),
        Type::Uint32 | Type::Fixed32 => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        // Answers have texts, because numbers of JavaScript are exact to 2^53 only.
        Type::Uint64 | Type::Fixed64 => {
            json!({ "type": ["string", "integer"], "pattern": "^[0-9]{1,20}$", "minimum": 0 })
        }
        Type::Int64 | Type::Sint64 | Type::Sfixed64 => {
            json!({ "type": ["string", "integer"], "pattern": "^-?[0-9]{1,19}$" })
        }
        Type::Double | Type::Float => json!({ "type": "number" }),
        Type::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
        Type::Message | Type::Group => match field.type_name() {
            ".google.protobuf.Duration" => {
                json!({ "type": "string", "pattern": "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$", "examples": ["1.5s"] })
            }
            ".google.protobuf.Timestamp" => json!({ "type": "string", "format": "date-time" }),
            name => json!({ "$ref": reference(name) }),
        },
        Type::Enum => json!({ "$ref": reference(field.type_name()) }),
        Type::String => json!({ "type": "string" }),
    }
}

/// The body of an error.
fn error() -> Value {
    let codes: Vec<&str> = (1..=16).map(|number| crate::codes::code(number).0).collect();
    json!({
        "type": "object",
        "required": ["code"],
        "properties": {
            "code": { "enum": codes },
            "message": { "type": "string" },
            "details": { "type": "array", "items": {
                "type": "object",
                "required": ["type", "value"],
                "properties": {
                    "type": { "type": "string", "examples": ["google.rpc.ErrorInfo"] },
                    "value": { "type": "string", "description": "The message, in base64 without padding." },
                },
            } },
        },
    })
}
