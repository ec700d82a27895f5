//! The library `struct` of scripts: numbers and strings as bytes, and back.

use mlua::{Lua, LuaString, Table, Value, Variadic};

use super::lua_errors::{bad_argument, raised};

/// The greatest size of an integer, and of an alignment.
const MOST_BYTES: usize = 32;

/// Makes the library.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    library.raw_set("pack", lua.create_function(|lua, args| pack(lua, &args))?)?;
    library.raw_set("unpack", lua.create_function(unpack)?)?;
    library.raw_set("size", lua.create_function(|lua, format| size(lua, &format))?)?;
    Ok(library)
}

/// One item of a format.
#[derive(Debug, Clone, Copy)]
struct StructItem {
    kind: u8,
    size: usize,
    is_big: bool,
    /// Zeros before it.
    padding: usize,
}

/// The items of a format, one after the other.
struct StructFormat<'a> {
    rest: &'a [u8],
    is_big: bool,
    align: usize,
}

impl<'a> StructFormat<'a> {
    fn new(format: &'a [u8]) -> Self {
        Self { rest: format, is_big: false, align: 1 }
    }

    fn number(&mut self, default: usize) -> usize {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        if number.is_empty() {
            return default;
        }
        number
            .iter()
            .fold(0, |sum: usize, digit| sum.saturating_mul(10).saturating_add(usize::from(digit - b'0')))
    }

    /// The next item of one that stands at `length`.
    fn next(&mut self, lua: &Lua, length: usize) -> mlua::Result<Option<StructItem>> {
        while let Some((kind, rest)) = self.rest.split_first() {
            self.rest = rest;
            let size = match kind {
                b' ' => continue,
                b'<' | b'>' => {
                    self.is_big = *kind == b'>';
                    continue;
                }
                b'!' => {
                    self.align = self.number(8);
                    if !self.align.is_power_of_two() {
                        return Err(raised(lua, &format!("alignment {} is not a power of 2", self.align)));
                    }
                    continue;
                }
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'f' => 4,
                b'i' | b'I' => self.number(4),
                b'c' => self.number(1),
                b's' => 0,
                other => {
                    let why = format!("invalid format option '{}'", char::from(*other));
                    return Err(bad_argument(lua, 1, &why));
                }
            };
            if matches!(kind, b'i' | b'I') && size > MOST_BYTES {
                return Err(raised(
                    lua,
                    &format!("integral size {size} is larger than limit of {MOST_BYTES}"),
                ));
            }
            let unit = if size == 0 || *kind == b'c' { 1 } else { size.min(self.align) };
            let padding = if unit.is_power_of_two() { length.wrapping_neg() & (unit - 1) } else { 0 };
            return Ok(Some(StructItem { kind: *kind, size, is_big: self.is_big, padding }));
        }
        Ok(None)
    }
}

fn pack(lua: &Lua, args: &Variadic<Value>) -> mlua::Result<LuaString> {
    let format = text(lua, args, 0)?;
    let format = format.as_bytes();
    let mut items = StructFormat::new(&format);
    let mut out = Vec::with_capacity(64);
    let mut at = 1;
    while let Some(item) = items.next(lua, out.len())? {
        out.resize(out.len() + item.padding, 0);
        match item.kind {
            b'x' => out.push(0),
            b'c' | b's' => {
                let given = text(lua, args, at)?;
                let given = given.as_bytes();
                let size = if item.size == 0 { given.len() } else { item.size };
                let part = given.get(..size).ok_or_else(|| bad_argument(lua, at + 1, "string too short"))?;
                out.extend_from_slice(part);
                if item.kind == b's' {
                    out.push(0);
                }
                at += 1;
            }
            _ => {
                put_number(&mut out, item, number(lua, args, at)?);
                at += 1;
            }
        }
    }
    lua.create_string(out)
}

fn put_number(out: &mut Vec<u8>, item: StructItem, number: f64) {
    let start = out.len();
    match item.kind {
        b'd' => out.extend_from_slice(&number.to_le_bytes()),
        b'f' => out.extend_from_slice(&(number as f32).to_le_bytes()),
        _ => {
            // As C converts: what is negative by way of a signed integer.
            let whole = if number < 0.0 { number as i64 as u64 } else { number as u64 };
            let bytes = whole.to_le_bytes().into_iter().chain(std::iter::repeat(0));
            out.extend(bytes.take(item.size));
        }
    }
    if item.is_big {
        out[start..].reverse();
    }
}

fn unpack(lua: &Lua, args: Variadic<Value>) -> mlua::Result<Variadic<Value>> {
    let (format, data) = (text(lua, &args, 0)?, text(lua, &args, 1)?);
    let (format, data) = (format.as_bytes(), data.as_bytes());
    let mut at = if args.len() > 2 { number(lua, &args, 2)? as usize } else { 1 }.saturating_sub(1);
    let mut items = StructFormat::new(&format);
    let mut out: Vec<Value> = Vec::with_capacity(8);
    let short = || bad_argument(lua, 2, "data string too short");
    while let Some(item) = items.next(lua, at)? {
        at += item.padding;
        let mut size = item.size;
        if item.kind == b'c' && size == 0 {
            let before = out.pop().as_ref().and_then(Value::as_f64);
            size = before.ok_or_else(|| raised(lua, "format 'c0' needs a previous size"))? as usize;
        }
        let rest = data.get(at..).ok_or_else(short)?;
        if item.kind == b's' {
            let end = rest.iter().position(|byte| *byte == 0);
            let end = end.ok_or_else(|| raised(lua, "unfinished string in data"))?;
            out.push(Value::String(lua.create_string(&rest[..end])?));
            at += end + 1;
            continue;
        }
        let part = rest.get(..size).ok_or_else(short)?;
        match item.kind {
            b'x' => {}
            b'c' => out.push(Value::String(lua.create_string(part)?)),
            _ => out.push(Value::Number(read_number(item, part))),
        }
        at += size;
    }
    out.push(Value::Number((at + 1) as f64));
    Ok(Variadic::from(out))
}

fn read_number(item: StructItem, part: &[u8]) -> f64 {
    let mut bytes = [0; 8];
    for (place, byte) in bytes.iter_mut().enumerate().take(part.len()) {
        *byte = part[if item.is_big { part.len() - 1 - place } else { place }];
    }
    match item.kind {
        b'd' => return f64::from_le_bytes(bytes),
        b'f' => return f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        _ => {}
    }
    let whole = u64::from_le_bytes(bytes);
    if item.kind.is_ascii_uppercase() {
        return whole as f64;
    }
    let unused = 64 - 8 * u32::try_from(part.len()).unwrap_or(8).clamp(1, 8);
    ((whole << unused) as i64 >> unused) as f64
}

fn size(lua: &Lua, format: &LuaString) -> mlua::Result<f64> {
    let format = format.as_bytes();
    let mut items = StructFormat::new(&format);
    let mut length = 0;
    while let Some(item) = items.next(lua, length)? {
        if item.kind == b's' {
            return Err(bad_argument(lua, 1, "variable-size format for 'struct.size'"));
        }
        length += item.padding + item.size;
    }
    Ok(length as f64)
}

fn text(lua: &Lua, args: &Variadic<Value>, at: usize) -> mlua::Result<LuaString> {
    match args.get(at) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value @ (Value::Number(_) | Value::Integer(_))) => {
            lua.coerce_string(value.clone())?.ok_or_else(|| bad_argument(lua, at + 1, "string expected"))
        }
        other => Err(expected(lua, at, "string", other)),
    }
}

fn number(lua: &Lua, args: &Variadic<Value>, at: usize) -> mlua::Result<f64> {
    match args.get(at) {
        Some(Value::Number(number)) => Ok(*number),
        Some(Value::Integer(number)) => Ok(*number as f64),
        Some(value @ Value::String(_)) => {
            let number = lua.coerce_number(value.clone())?;
            number.ok_or_else(|| expected(lua, at, "number", Some(value)))
        }
        other => Err(expected(lua, at, "number", other)),
    }
}

fn expected(lua: &Lua, at: usize, kind: &str, found: Option<&Value>) -> mlua::Error {
    let found = match found {
        None => "no value",
        Some(Value::Integer(_)) => "number",
        Some(other) => other.type_name(),
    };
    bad_argument(lua, at + 1, &format!("{kind} expected, got {found}"))
}
