//! The shapes of messages: what the reader and the writer need of the descriptors.

use std::collections::HashMap;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};

use super::text::string;

/// The shapes of all messages and methods of some descriptors.
#[derive(Debug)]
pub struct ProtoShapes {
    messages: Vec<MessageShape>,
    enums: Vec<EnumShape>,
    methods: HashMap<String, MethodShape>,
    /// Messages by their full names, for the types that an `Any` names.
    names: HashMap<String, usize>,
}

/// A method.
#[derive(Debug, Clone)]
pub struct MethodShape {
    /// The path of the method: `/package.Service/Method`.
    pub path: String,
    /// True if its calls are streams.
    pub is_stream: bool,
    pub(super) input: usize,
    pub(super) output: usize,
}

/// The descriptors have a kind of field that JSON is not written for.
#[derive(Debug)]
pub struct ShapeError(String);

impl std::fmt::Display for ShapeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A message.
#[derive(Debug)]
pub(super) struct MessageShape {
    pub(super) fields: Vec<FieldShape>,
    /// Fields by both spellings of their names. Messages have few: comparing lengths is faster than a hash.
    by_name: Vec<(String, usize)>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct FieldShape {
    pub(super) number: u32,
    /// The name in JSON.
    pub(super) name: String,
    /// The name as it stands before a value: `"name":`.
    pub(super) key: String,
    pub(super) kind: FieldKind,
    pub(super) cardinality: Cardinality,
    /// The oneof that the field is a member of.
    pub(super) oneof: Option<i32>,
}

/// The number of times that a field is in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cardinality {
    /// The field is written even if it has its default.
    Implicit,
    /// The field is left out if it is unset.
    Optional,
    Repeated,
    Map,
}

/// The type of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Fixed64,
    String,
    Bytes,
    Enum(usize),
    Message(usize),
    Duration,
    Timestamp,
    /// `google.protobuf.Any`.
    Any,
}

/// An enum.
#[derive(Debug)]
pub(super) struct EnumShape {
    values: Vec<(String, i32)>,
}

impl EnumShape {
    pub(super) fn number(&self, name: &str) -> Option<i32> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, number)| *number)
    }

    pub(super) fn name(&self, number: i32) -> Option<&str> {
        self.values.iter().find(|(_, known)| *known == number).map(|(name, _)| name.as_str())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(name, _)| name.as_str())
    }
}

impl MessageShape {
    pub(super) fn field(&self, name: &str) -> Option<usize> {
        self.by_name.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }

    pub(super) fn numbered(&self, number: u32) -> Option<usize> {
        let is_it = |field: &FieldShape| field.number == number;
        // Most messages have their fields in the order of their numbers.
        let guess = (number as usize).wrapping_sub(1);
        if self.fields.get(guess).is_some_and(is_it) {
            Some(guess)
        } else {
            self.fields.iter().position(is_it)
        }
    }
}

impl ProtoShapes {
    /// Reads encoded descriptors.
    pub fn new(descriptors: &[u8]) -> Result<Self, ShapeError> {
        let set = FileDescriptorSet::decode(descriptors).map_err(|error| ShapeError(error.to_string()))?;
        let mut names = DescriptorNames::default();
        for file in &set.file {
            let package = format!(".{}", file.package());
            file.message_type.iter().for_each(|message| names.add_message(&package, message));
            file.enum_type.iter().for_each(|it| names.add_enum(&package, it));
        }
        let messages = names.messages.iter().map(|message| names.shape(message)).collect::<Result<_, _>>()?;
        let mut methods = HashMap::new();
        for file in &set.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    let shape = MethodShape {
                        path: path.clone(),
                        is_stream: method.client_streaming() || method.server_streaming(),
                        input: names.message(method.input_type())?,
                        output: names.message(method.output_type())?,
                    };
                    methods.insert(path, shape);
                }
            }
        }
        let value = |value: &prost_types::EnumValueDescriptorProto| (value.name().to_owned(), value.number());
        let shape = |it: &&EnumDescriptorProto| EnumShape { values: it.value.iter().map(value).collect() };
        let enums = names.enums.iter().map(shape).collect();
        Ok(Self { messages, enums, methods, names: names.message_names })
    }

    /// Returns the method with a path.
    #[must_use]
    pub fn method(&self, path: &str) -> Option<&MethodShape> {
        self.methods.get(path)
    }

    /// Returns all methods.
    pub fn methods(&self) -> impl Iterator<Item = &MethodShape> {
        self.methods.values()
    }

    /// True if the request of a method has a list of messages.
    #[must_use]
    pub fn takes_messages(&self, method: &MethodShape) -> bool {
        let is_list = |field: &FieldShape| {
            field.cardinality == Cardinality::Repeated && matches!(field.kind, FieldKind::Message(_))
        };
        self.message(method.input).is_some_and(|message| message.fields.iter().any(is_list))
    }

    pub(super) fn message(&self, message: usize) -> Option<&MessageShape> {
        self.messages.get(message)
    }

    /// Returns the kind of the message that the URL of an `Any` names.
    pub(super) fn kind_of_url(&self, url: &str) -> Option<FieldKind> {
        let name = format!(".{}", url.rsplit('/').next()?);
        let message = self.names.get(&name).copied();
        well_known(&name).or_else(|| message.map(FieldKind::Message))
    }

    pub(super) fn enumeration(&self, number: usize) -> Option<&EnumShape> {
        self.enums.get(number)
    }
}

/// The messages and enums by their full names.
#[derive(Default)]
struct DescriptorNames<'d> {
    messages: Vec<&'d DescriptorProto>,
    enums: Vec<&'d EnumDescriptorProto>,
    message_names: HashMap<String, usize>,
    enum_names: HashMap<String, usize>,
}

impl<'d> DescriptorNames<'d> {
    fn add_message(&mut self, scope: &str, message: &'d DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        for inner in &message.nested_type {
            self.add_message(&name, inner);
        }
        for inner in &message.enum_type {
            self.add_enum(&name, inner);
        }
        self.message_names.insert(name, self.messages.len());
        self.messages.push(message);
    }

    fn add_enum(&mut self, scope: &str, it: &'d EnumDescriptorProto) {
        self.enum_names.insert(format!("{scope}.{}", it.name()), self.enums.len());
        self.enums.push(it);
    }

    fn message(&self, name: &str) -> Result<usize, ShapeError> {
        self.message_names.get(name).copied().ok_or_else(|| ShapeError(format!("there is no message {name}")))
    }

    fn shape(&self, message: &DescriptorProto) -> Result<MessageShape, ShapeError> {
        let (mut fields, mut by_name) = (Vec::new(), Vec::new());
        for field in &message.field {
            // Messages that no method has may have fields of any kind.
            let Some(shape) = self.field(field)? else { continue };
            by_name.push((field.name().to_owned(), fields.len()));
            if shape.name != field.name() {
                by_name.push((shape.name.clone(), fields.len()));
            }
            fields.push(shape);
        }
        Ok(MessageShape { fields, by_name })
    }

    fn field(&self, field: &FieldDescriptorProto) -> Result<Option<FieldShape>, ShapeError> {
        let Some(kind) = self.kind(field)? else { return Ok(None) };
        let cardinality = match (field.label(), kind) {
            (Label::Repeated, FieldKind::Message(message)) if self.is_map_entry(message) => Cardinality::Map,
            (Label::Repeated, _) => Cardinality::Repeated,
            (_, FieldKind::Message(_) | FieldKind::Duration | FieldKind::Timestamp | FieldKind::Any) => {
                Cardinality::Optional
            }
            _ if field.oneof_index.is_some() => Cardinality::Optional,
            _ => Cardinality::Implicit,
        };
        let name = if field.json_name().is_empty() {
            camel_case(field.name())
        } else {
            field.json_name().to_owned()
        };
        let number = u32::try_from(field.number()).unwrap_or_default();
        let oneof = field.oneof_index.filter(|_| !field.proto3_optional());
        let mut key = Vec::new();
        string(&mut key, &name);
        let key = String::from_utf8_lossy(&key).into_owned() + ":";
        Ok(Some(FieldShape { number, name, key, kind, cardinality, oneof }))
    }

    fn is_map_entry(&self, message: usize) -> bool {
        let options = self.messages.get(message).and_then(|message| message.options.as_ref());
        options.is_some_and(|options| options.map_entry())
    }

    fn kind(&self, field: &FieldDescriptorProto) -> Result<Option<FieldKind>, ShapeError> {
        Ok(Some(match field.r#type() {
            Type::Bool => FieldKind::Bool,
            Type::Int32 => FieldKind::Int32,
            Type::Int64 => FieldKind::Int64,
            Type::Uint32 => FieldKind::Uint32,
            Type::Uint64 => FieldKind::Uint64,
            Type::Fixed64 => FieldKind::Fixed64,
            Type::String => FieldKind::String,
            Type::Bytes => FieldKind::Bytes,
            Type::Enum => {
                let number = self.enum_names.get(field.type_name()).copied();
                FieldKind::Enum(number.ok_or_else(|| ShapeError(format!("no enum {}", field.type_name())))?)
            }
            Type::Message => match well_known(field.type_name()) {
                Some(kind) => kind,
                None => FieldKind::Message(self.message(field.type_name())?),
            },
            // None of Weir's messages has one; a test compares every message with another library.
            _ => return Ok(None),
        }))
    }
}

/// Returns the kind of a message that has a form of its own in JSON.
fn well_known(name: &str) -> Option<FieldKind> {
    Some(match name {
        ".google.protobuf.Duration" => FieldKind::Duration,
        ".google.protobuf.Timestamp" => FieldKind::Timestamp,
        ".google.protobuf.Any" => FieldKind::Any,
        _ => return None,
    })
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_take_lists_are_those_with_large_bodies() {
        let shapes = ProtoShapes::new(weir_proto::DESCRIPTORS).unwrap();
        let large = shapes.methods().filter(|method| !method.is_stream && shapes.takes_messages(method));
        let mut large: Vec<_> = large.map(|method| method.path.rsplit('/').next().unwrap()).collect();
        large.sort_unstable();
        // Of features, those that this program has.
        let is_there =
            |name: &&str| shapes.methods().any(|method| method.path.ends_with(&format!("/{name}")));
        let lists =
            ["Enqueue", "PutMany", "ShouldAllowBatch", "ShouldRateLimit"].into_iter().filter(is_there);
        assert_eq!(large, lists.collect::<Vec<_>>());
    }
}
