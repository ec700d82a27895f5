//! Reads JSON as a message of the wire.

mod ignored;
mod value;

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use self::ignored::Ignored;
use self::value::ValueSeed;
use super::shape::{Cardinality, FieldKind, FieldShape, MessageShape, MethodShape, ProtoShapes};
use super::wire::{put_bytes, wrap};

/// Characters of a long error that are shown, before and after what is left out.
const BEGIN: usize = 200;
const END: usize = 60;

/// The least likeness of a name that an error offers, from 0 to 1.
const ALIKE: f64 = 0.7;

/// The handling of fields that the message does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownFields {
    /// For generated clients, which may be newer than the server.
    Ignore,
    /// For people, who have mistyped a name.
    Refuse,
}

/// A mistake in JSON, with line and column.
#[derive(Debug)]
pub struct JsonMistake(serde_json::Error);

impl fmt::Display for JsonMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text of a value of the wrong type is part of the error.
        let text = self.0.to_string();
        let (begin, end) = (text.chars().take(BEGIN), text.chars().count().saturating_sub(END));
        if end <= BEGIN {
            return f.write_str(&text);
        }
        write!(f, "{} … {}", begin.collect::<String>(), text.chars().skip(end).collect::<String>())
    }
}

impl ProtoShapes {
    /// Reads the request of a method from JSON.
    pub fn read(
        &self,
        method: &MethodShape,
        json: &[u8],
        unknown: UnknownFields,
    ) -> Result<Vec<u8>, JsonMistake> {
        let mut out = Vec::with_capacity(json.len());
        let mut reader = serde_json::Deserializer::from_slice(json);
        let seed = MessageSeed { shapes: self, message: method.input, out: &mut out, unknown };
        seed.deserialize(&mut reader).and_then(|()| reader.end()).map_err(JsonMistake)?;
        Ok(out)
    }
}

/// Reads a message.
struct MessageSeed<'s> {
    shapes: &'s ProtoShapes,
    message: usize,
    out: &'s mut Vec<u8>,
    unknown: UnknownFields,
}

impl<'de> DeserializeSeed<'de> for MessageSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MessageSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the fields of the message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { shapes, message, out, unknown } = self;
        let shape = shapes.message(message).ok_or_else(|| A::Error::custom("there is no such message"))?;
        // A test checks that no message has more fields, and no more oneofs.
        let (mut seen, mut chosen) = (0_u128, 0_u32);
        while let Some(field) = map.next_key_seed(NameSeed { shape, unknown })? {
            let Some(index) = field else {
                map.next_value::<Ignored>()?;
                continue;
            };
            let field = &shape.fields[index];
            let bit = 1_u128 << (index % 128);
            if seen & bit != 0 {
                return Err(A::Error::custom(format_args!("field `{}` is given twice", field.name)));
            }
            seen |= bit;
            let before = out.len();
            map.next_value_seed(FieldSeed { shapes, field, out, unknown })?;
            let choice = field.oneof.map_or(0, |oneof| 1 << (oneof % 32));
            if choice != 0 && out.len() > before {
                if chosen & choice != 0 {
                    let text = format_args!("field `{}`: only one of its choice may be given", field.name);
                    return Err(A::Error::custom(text));
                }
                chosen |= choice;
            }
        }
        Ok(())
    }
}

/// Reads the name of a field; `None` if it is unknown and ignored.
struct NameSeed<'s> {
    shape: &'s MessageShape,
    unknown: UnknownFields,
}

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<usize>, E> {
        let found = self.shape.field(name);
        if found.is_some() || self.unknown == UnknownFields::Ignore {
            return Ok(found);
        }
        let known = self.shape.fields.iter().map(|field| field.name.as_str());
        Err(E::custom(format_args!("unknown field `{}`{}", shortened(name), meant(name, known))))
    }
}

/// Reads the value of a field.
struct FieldSeed<'s> {
    shapes: &'s ProtoShapes,
    field: &'s FieldShape,
    out: &'s mut Vec<u8>,
    unknown: UnknownFields,
}

impl FieldSeed<'_> {
    /// Returns the reader of one value with this kind and number.
    fn value(&mut self, kind: FieldKind, number: u32) -> ValueSeed<'_> {
        let (shapes, name, unknown) = (self.shapes, &*self.field.name, self.unknown);
        ValueSeed { shapes, name, kind, number, out: self.out, unknown }
    }
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for FieldSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.field.cardinality == Cardinality::Map { "an object" } else { "a list" };
        write!(f, "{what} for `{}`", self.field.name)
    }

    /// `null` is an absent field.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        match self.field.cardinality {
            Cardinality::Repeated => deserializer.deserialize_seq(self),
            Cardinality::Map => deserializer.deserialize_map(self),
            Cardinality::Implicit | Cardinality::Optional => {
                let (kind, number) = (self.field.kind, self.field.number);
                self.value(kind, number).deserialize(deserializer)
            }
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let (kind, number) = (self.field.kind, self.field.number);
        while list.next_element_seed(self.value(kind, number))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let FieldKind::Message(entry) = self.field.kind else { return Ok(()) };
        let value = self.shapes.message(entry).and_then(|entry| entry.fields.get(1));
        let Some(value) = value else { return Ok(()) };
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let start = self.out.len();
            put_bytes(self.out, 1, key.as_bytes());
            if let Some(key) = seen.replace(key) {
                let (name, key) = (&self.field.name, shortened(&key));
                return Err(A::Error::custom(format_args!("`{key}` is given twice in `{name}`")));
            }
            map.next_value_seed(self.value(value.kind, 2))?;
            wrap(self.out, start, self.field.number);
        }
        Ok(())
    }
}

/// Returns what was probably meant, as the end of an error.
fn meant<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> String {
    let mut nearest: Option<(f64, &str)> = None;
    // A long name is no misspelling, and costs time.
    for known in known.filter(|known| name.len() <= 2 * known.len() + 8) {
        let likeness = strsim::jaro_winkler(known, name);
        if likeness >= ALIKE && nearest.is_none_or(|(best, _)| likeness > best) {
            nearest = Some((likeness, known));
        }
    }
    nearest.map_or_else(String::new, |(_, known)| format!("; did you mean `{known}`?"))
}

/// Returns a text as errors show it: at most 64 characters, escaped.
fn shortened(text: &str) -> String {
    text.escape_debug().take(64).collect()
}
