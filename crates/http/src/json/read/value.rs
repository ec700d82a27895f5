//! Reads one value of a field.

mod any;

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use super::super::shape::{FieldKind, ProtoShapes};
use super::super::wire::{FIXED64, VARINT, put_bytes, put_tag, put_varint, wrap};
use super::super::{duration, timestamp};
use super::{MessageSeed, UnknownFields, meant, shortened};

/// Both alphabets are read, with and without padding.
const EITHER: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, EITHER);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, EITHER);

/// Reads one value, and appends it as a field.
pub(super) struct ValueSeed<'s> {
    pub(super) shapes: &'s ProtoShapes,
    pub(super) name: &'s str,
    pub(super) kind: FieldKind,
    pub(super) number: u32,
    pub(super) out: &'s mut Vec<u8>,
    pub(super) unknown: UnknownFields,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl ValueSeed<'_> {
    fn number(self, value: u64) {
        match self.kind {
            FieldKind::Fixed64 => {
                put_tag(self.out, self.number, FIXED64);
                self.out.extend_from_slice(&value.to_le_bytes());
            }
            _ => {
                put_tag(self.out, self.number, VARINT);
                put_varint(self.out, value);
            }
        }
    }

    /// Appends a whole number if the kind can hold it.
    fn whole<E: Error>(self, value: i128) -> Result<(), E> {
        let wire = match self.kind {
            FieldKind::Uint32 => u32::try_from(value).map(u64::from).ok(),
            FieldKind::Uint64 | FieldKind::Fixed64 => u64::try_from(value).ok(),
            // Negative numbers have ten bytes on the wire.
            FieldKind::Int32 | FieldKind::Enum(_) => i32::try_from(value).map(|it| i64::from(it) as u64).ok(),
            FieldKind::Int64 => i64::try_from(value).map(|it| it as u64).ok(),
            _ => return Err(self.wrong(&value.to_string())),
        };
        match wire {
            Some(wire) => {
                self.number(wire);
                Ok(())
            }
            None => Err(self.wrong(&value.to_string())),
        }
    }

    fn wrong<E: Error>(&self, found: &str) -> E {
        E::custom(format_args!("`{}`: {} is not {}", self.name, shortened(found), self.expected()))
    }

    fn expected(&self) -> &'static str {
        match self.kind {
            FieldKind::Bool => "true or false",
            FieldKind::Int32 => "a whole number of 32 bits",
            FieldKind::Int64 => "a whole number of 64 bits",
            FieldKind::Uint32 => "a whole number of 32 bits, from 0 on",
            FieldKind::Uint64 | FieldKind::Fixed64 => "a whole number of 64 bits, from 0 on",
            FieldKind::String => "a text",
            FieldKind::Bytes => "a text in base64",
            FieldKind::Enum(_) => "a name or a number of the enum",
            FieldKind::Message(_) => "an object",
            FieldKind::Any => "an object with its type in `@type`",
            FieldKind::Duration => "a duration, such as \"1.5s\"",
            FieldKind::Timestamp => "a time, such as \"2026-11-27T06:00:00Z\"",
        }
    }

    /// Appends a moment or a span.
    fn seconds(self, seconds: i64, nanos: i32) {
        let start = self.out.len();
        for (number, value) in [(1, seconds), (2, i64::from(nanos))] {
            if value != 0 {
                put_tag(self.out, number, VARINT);
                put_varint(self.out, value as u64);
            }
        }
        wrap(self.out, start, self.number);
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for `{}`", self.expected(), self.name)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        if self.kind != FieldKind::Bool {
            return Err(self.wrong(if value { "true" } else { "false" }));
        }
        self.number(value.into());
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.whole(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.whole(value.into())
    }

    /// A number with a fraction or an exponent, or one that has more than 64 bits.
    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        Err(self.wrong(&value.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.kind {
            FieldKind::String => put_bytes(self.out, self.number, text.as_bytes()),
            FieldKind::Bytes => {
                let bytes = STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text));
                put_bytes(self.out, self.number, &bytes.map_err(|_| self.wrong("the text"))?);
            }
            FieldKind::Duration => {
                let (seconds, nanos) = duration::parse(text).ok_or_else(|| self.wrong(text))?;
                self.seconds(seconds, nanos);
            }
            FieldKind::Timestamp => {
                let (seconds, nanos) = timestamp::parse(text).ok_or_else(|| self.wrong(text))?;
                self.seconds(seconds, nanos);
            }
            FieldKind::Enum(of) => {
                let shape = self.shapes.enumeration(of);
                let Some(number) = shape.and_then(|shape| shape.number(text)) else {
                    let meant = shape.map_or_else(String::new, |shape| meant(text, shape.names()));
                    let (name, text) = (self.name, shortened(text));
                    return Err(E::custom(format_args!("`{name}`: there is no `{text}`{meant}")));
                };
                return self.whole(number.into());
            }
            FieldKind::Bool | FieldKind::Message(_) | FieldKind::Any => return Err(self.wrong(text)),
            FieldKind::Int32
            | FieldKind::Int64
            | FieldKind::Uint32
            | FieldKind::Uint64
            | FieldKind::Fixed64 => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                let is_plain = digits.len() <= 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
                let value = text.parse::<i128>().ok().filter(|_| is_plain);
                let value = value.ok_or_else(|| self.wrong(text))?;
                return self.whole(value);
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        if self.kind == FieldKind::Any {
            return any::read(self, map);
        }
        let FieldKind::Message(message) = self.kind else { return Err(self.wrong("an object")) };
        let start = self.out.len();
        let Self { shapes, out, unknown, number, .. } = self;
        MessageSeed { shapes, message, out: &mut *out, unknown }.visit_map(map)?;
        wrap(out, start, number);
        Ok(())
    }
}
