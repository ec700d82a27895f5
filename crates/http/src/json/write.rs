//! Writes a message of the wire as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::shape::{Cardinality, FieldKind, FieldShape, MessageShape, MethodShape, ProtoShapes};
use super::text::{number, quoted, signed, string, text};
use super::wire::{WireValue, take_field, take_varint};
use super::{duration, timestamp};

/// The deepest nesting of messages.
const MAX_DEPTH: usize = 100;

/// The bytes are not the message that the descriptors describe.
#[derive(Debug, PartialEq, Eq)]
pub struct WireMistake;

type Written = Result<(), WireMistake>;

impl ProtoShapes {
    /// Writes the answer of a method as JSON.
    pub fn write(&self, method: &MethodShape, answer: &[u8]) -> Result<Vec<u8>, WireMistake> {
        let mut out = Vec::with_capacity(128 + 6 * answer.len());
        self.message_json(&mut out, method.output, answer, MAX_DEPTH)?;
        Ok(out)
    }

    fn message_json(&self, out: &mut Vec<u8>, message: usize, bytes: &[u8], depth: usize) -> Written {
        out.push(b'{');
        self.fields_json(out, message, bytes, depth, true)?;
        out.push(b'}');
        Ok(())
    }

    /// Writes the fields of a message, without braces. `is_first`: no field stands before them.
    fn fields_json(
        &self,
        out: &mut Vec<u8>,
        message: usize,
        mut bytes: &[u8],
        depth: usize,
        mut is_first: bool,
    ) -> Written {
        let shape = self.message(message).filter(|_| depth > 0).ok_or(WireMistake)?;
        let mut found = Vec::with_capacity(shape.fields.len());
        while !bytes.is_empty() {
            let (number, value) = take_field(&mut bytes).ok_or(WireMistake)?;
            found.extend(shape.numbered(number).map(|field| (field, value)));
        }
        // Stable: the elements of a list keep their order.
        if !found.is_sorted_by_key(|(field, _)| *field) {
            found.sort_by_key(|(field, _)| *field);
        }
        let mut rest = &found[..];
        for (index, field) in shape.fields.iter().enumerate() {
            let count = rest.iter().take_while(|(of, _)| *of == index).count();
            let (values, later) = rest.split_at(count);
            rest = later;
            if values.is_empty() && field.cardinality == Cardinality::Optional {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            text(out, &field.key);
            self.field_json(out, field, values, depth - 1)?;
        }
        Ok(())
    }

    /// Writes a message of any type: its fields beside the URL of its type.
    fn any_json(&self, out: &mut Vec<u8>, mut bytes: &[u8], depth: usize) -> Written {
        let (mut url, mut held): (&[u8], &[u8]) = (&[], &[]);
        while !bytes.is_empty() {
            match take_field(&mut bytes).ok_or(WireMistake)? {
                (1, WireValue::Bytes(value)) => url = value,
                (2, WireValue::Bytes(value)) => held = value,
                _ => {}
            }
        }
        let url = std::str::from_utf8(url).map_err(|_| WireMistake)?;
        text(out, "{\"@type\":");
        string(out, url);
        match self.kind_of_url(url).filter(|_| depth > 0).ok_or(WireMistake)? {
            FieldKind::Message(message) => self.fields_json(out, message, held, depth - 1, false)?,
            kind => {
                text(out, ",\"value\":");
                self.value_json(out, kind, WireValue::Bytes(held), depth - 1)?;
            }
        }
        out.push(b'}');
        Ok(())
    }

    fn field_json(
        &self,
        out: &mut Vec<u8>,
        field: &FieldShape,
        values: &[(usize, WireValue<'_>)],
        depth: usize,
    ) -> Written {
        match field.cardinality {
            Cardinality::Map => {
                let FieldKind::Message(entry) = field.kind else { return Err(WireMistake) };
                let entry = self.message(entry).ok_or(WireMistake)?;
                out.push(b'{');
                for (index, (_, value)) in values.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    self.entry_json(out, entry, *value, depth)?;
                }
                out.push(b'}');
            }
            Cardinality::Repeated => {
                out.push(b'[');
                let mut is_first = true;
                for (_, value) in values {
                    self.element_json(out, field.kind, *value, depth, &mut is_first)?;
                }
                out.push(b']');
            }
            Cardinality::Implicit | Cardinality::Optional => {
                let unset = match field.kind {
                    FieldKind::String | FieldKind::Bytes => WireValue::Bytes(&[]),
                    _ => WireValue::Number(0),
                };
                let value = values.last().map_or(unset, |(_, value)| *value);
                self.value_json(out, field.kind, value, depth)?;
            }
        }
        Ok(())
    }

    /// Writes one element of a list, or several numbers that are packed.
    fn element_json(
        &self,
        out: &mut Vec<u8>,
        kind: FieldKind,
        value: WireValue<'_>,
        depth: usize,
        is_first: &mut bool,
    ) -> Written {
        let mut separate = |out: &mut Vec<u8>| {
            if !std::mem::take(is_first) {
                out.push(b',');
            }
        };
        let (WireValue::Bytes(mut packed), true) = (value, is_number(kind)) else {
            separate(out);
            return self.value_json(out, kind, value, depth);
        };
        while !packed.is_empty() {
            let number = match kind {
                FieldKind::Fixed64 => {
                    let (first, rest) = packed.split_first_chunk::<8>().ok_or(WireMistake)?;
                    packed = rest;
                    u64::from_le_bytes(*first)
                }
                _ => take_varint(&mut packed).ok_or(WireMistake)?,
            };
            separate(out);
            self.value_json(out, kind, WireValue::Number(number), depth)?;
        }
        Ok(())
    }

    fn entry_json(
        &self,
        out: &mut Vec<u8>,
        entry: &MessageShape,
        value: WireValue<'_>,
        depth: usize,
    ) -> Written {
        let WireValue::Bytes(mut bytes) = value else { return Err(WireMistake) };
        let (mut key, mut held) = (None, None);
        while !bytes.is_empty() {
            let (number, value) = take_field(&mut bytes).ok_or(WireMistake)?;
            match number {
                1 => key = Some(value),
                2 => held = Some(value),
                _ => {}
            }
        }
        let (Some(0), Some(of_value)) = (entry.numbered(1), entry.numbered(2)) else {
            return Err(WireMistake);
        };
        let field = entry.fields.get(of_value).ok_or(WireMistake)?;
        // All keys of the messages are texts.
        self.value_json(out, FieldKind::String, key.unwrap_or(WireValue::Bytes(&[])), depth)?;
        out.push(b':');
        let values: Vec<(usize, WireValue<'_>)> = held.into_iter().map(|value| (0, value)).collect();
        self.field_json(out, field, &values, depth)
    }

    fn value_json(&self, out: &mut Vec<u8>, kind: FieldKind, value: WireValue<'_>, depth: usize) -> Written {
        match (kind, value) {
            (FieldKind::Bool, WireValue::Number(number)) => {
                out.extend_from_slice(if number == 0 { b"false" } else { b"true" });
            }
            (FieldKind::Uint32, WireValue::Number(value)) => number(out, u64::from(value as u32)),
            (FieldKind::Int32, WireValue::Number(value)) => signed(out, i64::from(value as i32)),
            (FieldKind::Uint64 | FieldKind::Fixed64, WireValue::Number(value)) => {
                out.push(b'"');
                number(out, value);
                out.push(b'"');
            }
            (FieldKind::Int64, WireValue::Number(value)) => {
                out.push(b'"');
                signed(out, value as i64);
                out.push(b'"');
            }
            (FieldKind::Enum(of), WireValue::Number(value)) => {
                let value = value as i32;
                match self.enumeration(of).and_then(|it| it.name(value)) {
                    Some(name) => quoted(out, name),
                    None => signed(out, i64::from(value)),
                }
            }
            (FieldKind::String, WireValue::Bytes(bytes)) => {
                string(out, std::str::from_utf8(bytes).map_err(|_| WireMistake)?);
            }
            (FieldKind::Bytes, WireValue::Bytes(bytes)) => quoted(out, &STANDARD.encode(bytes)),
            (FieldKind::Duration, WireValue::Bytes(bytes)) => {
                let (seconds, nanos) = seconds_and_nanos(bytes)?;
                out.push(b'"');
                duration::write(out, seconds, nanos);
                out.push(b'"');
            }
            (FieldKind::Timestamp, WireValue::Bytes(bytes)) => {
                let (seconds, nanos) = seconds_and_nanos(bytes)?;
                quoted(out, &timestamp::format(seconds, nanos).ok_or(WireMistake)?);
            }
            (FieldKind::Message(message), WireValue::Bytes(bytes)) => {
                self.message_json(out, message, bytes, depth)?;
            }
            (FieldKind::Any, WireValue::Bytes(bytes)) => self.any_json(out, bytes, depth)?,
            _ => return Err(WireMistake),
        }
        Ok(())
    }
}

/// True for kinds whose lists may be packed.
fn is_number(kind: FieldKind) -> bool {
    use FieldKind::{Bool, Enum, Fixed64, Int32, Int64, Uint32, Uint64};
    matches!(kind, Bool | Int32 | Int64 | Uint32 | Uint64 | Fixed64 | Enum(_))
}

fn seconds_and_nanos(mut bytes: &[u8]) -> Result<(i64, i32), WireMistake> {
    let (mut seconds, mut nanos) = (0, 0);
    while !bytes.is_empty() {
        match take_field(&mut bytes).ok_or(WireMistake)? {
            (1, WireValue::Number(number)) => seconds = number as i64,
            (2, WireValue::Number(number)) => nanos = number as i32,
            _ => {}
        }
    }
    Ok((seconds, nanos))
}
