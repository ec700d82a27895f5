//! Reads `google.protobuf.Any`: a message beside the URL of its type.

use serde::de::{DeserializeSeed as _, Error, MapAccess};
use serde_json::{Map, Value};

use super::{MessageSeed, ValueSeed};
use crate::json::shape::FieldKind;
use crate::json::wire::{put_bytes, wrap};

/// Reads an object with `@type`, which may stand behind the fields: so they are kept until it is known.
pub(super) fn read<'de, A: MapAccess<'de>>(seed: ValueSeed<'_>, mut map: A) -> Result<(), A::Error> {
    let mut fields = Map::new();
    while let Some((name, value)) = map.next_entry::<String, Value>()? {
        if fields.insert(name, value).is_some() {
            return Err(A::Error::custom(format_args!("a field of `{}` is given twice", seed.name)));
        }
    }
    let Some(Value::String(url)) = fields.remove("@type") else { return Err(seed.wrong("an object")) };
    let kind = seed.shapes.kind_of_url(&url).ok_or_else(|| seed.wrong::<A::Error>(&url))?;
    let ValueSeed { shapes, name, number, out, unknown, .. } = seed;
    let start = out.len();
    put_bytes(out, 1, url.as_bytes());
    let read = match kind {
        FieldKind::Message(message) => {
            let inner = out.len();
            let seed = MessageSeed { shapes, message, out: &mut *out, unknown };
            let read = seed.deserialize(Value::Object(fields));
            wrap(out, inner, 2);
            read
        }
        kind => {
            let value = fields.remove("value").unwrap_or_default();
            ValueSeed { shapes, name, kind, number: 2, out: &mut *out, unknown }.deserialize(value)
        }
    };
    wrap(out, start, number);
    read.map_err(A::Error::custom)
}
