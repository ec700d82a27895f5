//! Replies, and how they are written in RESP2 and RESP3.

use std::borrow::Cow;

use super::error_text::SimulatedError;
use super::numbers::double_text;

/// The version of the protocol that a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RespVersion {
    #[default]
    Two,
    Three,
}

/// Reply to a command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SimulatedReply {
    Status(Cow<'static, str>),
    Error(SimulatedError),
    Int(i64),
    Bulk(Vec<u8>),
    /// A bulk string that is absent.
    Nil,
    /// An array that is absent.
    NilArray,
    Array(Vec<SimulatedReply>),
    /// A bulk string in RESP2.
    Double(f64),
    /// An array in RESP2, of keys and values in turn.
    Map(Vec<(SimulatedReply, SimulatedReply)>),
    /// Members with their scores: in turn in RESP2, pairs in RESP3.
    Scored(Vec<(Vec<u8>, f64)>),
}

/// Reply to a command, or an error.
pub(super) type CommandResult = Result<SimulatedReply, SimulatedError>;

impl SimulatedReply {
    pub(super) const OK: Self = Self::Status(Cow::Borrowed("OK"));

    pub(super) fn bulk(text: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(text.into())
    }

    /// A count. No length here exceeds an `i64`.
    pub(super) fn count(count: usize) -> Self {
        Self::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub(super) fn bulks(texts: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self::Array(texts.into_iter().map(Self::Bulk).collect())
    }

    pub(super) fn optional(text: Option<Vec<u8>>) -> Self {
        text.map_or(Self::Nil, Self::Bulk)
    }

    /// Appends it.
    pub(super) fn write(&self, version: RespVersion, out: &mut Vec<u8>) {
        let is_new = version == RespVersion::Three;
        match self {
            Self::Status(text) => line(out, b'+', text.as_bytes()),
            Self::Error(SimulatedError(text)) => line(out, b'-', &one_line(text)),
            Self::Int(number) => line(out, b':', number.to_string().as_bytes()),
            Self::Bulk(text) => bulk(out, text),
            Self::Nil | Self::NilArray if is_new => out.extend_from_slice(b"_\r\n"),
            Self::Nil => out.extend_from_slice(b"$-1\r\n"),
            Self::NilArray => out.extend_from_slice(b"*-1\r\n"),
            Self::Array(parts) => {
                header(out, b'*', parts.len());
                parts.iter().for_each(|part| part.write(version, out));
            }
            Self::Double(number) if is_new => line(out, b',', double_text(*number).as_bytes()),
            Self::Double(number) => bulk(out, double_text(*number).as_bytes()),
            Self::Map(pairs) => {
                let (sign, length) = if is_new { (b'%', pairs.len()) } else { (b'*', 2 * pairs.len()) };
                header(out, sign, length);
                for (key, value) in pairs {
                    key.write(version, out);
                    value.write(version, out);
                }
            }
            Self::Scored(members) => write_scored(members, version, out),
        }
    }
}

fn write_scored(members: &[(Vec<u8>, f64)], version: RespVersion, out: &mut Vec<u8>) {
    let is_new = version == RespVersion::Three;
    header(out, b'*', if is_new { members.len() } else { 2 * members.len() });
    for (member, score) in members {
        if is_new {
            header(out, b'*', 2);
        }
        bulk(out, member);
        SimulatedReply::Double(*score).write(version, out);
    }
}

/// An error is one line, whatever a script put into it.
fn one_line(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }).collect()
}

fn header(out: &mut Vec<u8>, sign: u8, length: usize) {
    line(out, sign, length.to_string().as_bytes());
}

fn line(out: &mut Vec<u8>, sign: u8, text: &[u8]) {
    out.push(sign);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn bulk(out: &mut Vec<u8>, text: &[u8]) {
    header(out, b'$', text.len());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}
