//! Names of states in Redis.

use super::tag::write_places;
use super::{KeyPrefix, KeySecret, Subject};
use crate::algorithm::{Engine, EngineKind};
use crate::approximate::{ApproximateBound, ApproximateMode, ChunkLimit, ChunkTerms};
use crate::strategy::{Field, Limit, Scope, Strategy};

/// Appends the key of one limit.
pub fn write_key(
    out: &mut Vec<u8>,
    prefix: KeyPrefix<'_>,
    strategy: &Strategy,
    limit: &Limit,
    subject: &Subject<'_>,
) {
    prefix.write(out);
    write_name(out, strategy, limit, subject);
}

/// Appends the key of the reservations held beside a log.
pub fn write_held_key(
    out: &mut Vec<u8>,
    prefix: KeyPrefix<'_>,
    strategy: &Strategy,
    limit: &Limit,
    subject: &Subject<'_>,
) {
    prefix.write(out);
    write_name_of(out, "held", strategy, limit, subject);
}

/// Appends the name of a limit's state: the key without its tag.
pub fn write_name(out: &mut Vec<u8>, strategy: &Strategy, limit: &Limit, subject: &Subject<'_>) {
    match strategy.approximate() {
        // Other numbers, or a window of another length, must not meet its state.
        Some(rule) => write_name_of(out, &approximate_kind(&rule.bound), strategy, limit, subject),
        None => write_name_of(out, limit.algorithm.engine().name(), strategy, limit, subject),
    }
}

/// What stands in place of an engine where nodes count: no engine has this name.
fn approximate_kind(bound: &ApproximateBound) -> String {
    let (nodes, window) = (bound.nodes(), bound.window().0);
    match bound.mode() {
        ApproximateMode::Over { max_over } => format!("approximate-{max_over}-{nodes}-{window}"),
        ApproximateMode::Chunks(ChunkTerms { chunk, max_age, of }) => {
            let engine = match of {
                ChunkLimit::Bucket => EngineKind::Bucket,
                ChunkLimit::Window(_) => EngineKind::Window,
            };
            format!("chunks-{}-{chunk}-{nodes}-{}-{window}", engine.name(), max_age.0)
        }
    }
}

/// Hash tag of the places of a strategy's nodes.
#[must_use]
pub fn places_tag(secret: &KeySecret, strategy: &str) -> u128 {
    let mut text = Vec::with_capacity(64);
    write_places(&mut text, strategy);
    secret.hash(&text)
}

/// Appends the key of the places of the nodes that count a strategy, by its name in keys. It ends with a kind, where
/// the keys of a strategy named `places` have a colon.
pub fn write_places_key(out: &mut Vec<u8>, prefix: KeyPrefix<'_>, strategy: &str, bound: &ApproximateBound) {
    prefix.write(out);
    for part in ["places:", strategy, ":", &approximate_kind(bound)] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// A name whose third part is `kind`: an engine, or a name that no engine has.
fn write_name_of(out: &mut Vec<u8>, kind: &str, strategy: &Strategy, limit: &Limit, subject: &Subject<'_>) {
    for name in [strategy.key_name(), &limit.name, kind] {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
    }
    write_fields(out, &limit.scope, subject);
}

/// Appends the fields of a scope with the subject's values.
pub(super) fn write_fields(out: &mut Vec<u8>, scope: &Scope, subject: &Subject<'_>) {
    for (index, field) in scope.fields().iter().enumerate() {
        if index > 0 {
            out.push(b':');
        }
        write_field(out, field);
        write_part(out, subject.field(field));
    }
}

/// Appends the key that remembers a refund by its id.
pub fn write_refund_key(
    out: &mut Vec<u8>,
    prefix: KeyPrefix<'_>,
    strategy: &Strategy,
    subject: &Subject<'_>,
    id: &str,
) {
    prefix.write(out);
    write_refund_name(out, strategy, subject, id);
}

/// Appends the name of a refund: the key without its tag. In place of the engine it has a length, so it cannot be
/// a limit's, even of a strategy named `refund`.
pub fn write_refund_name(out: &mut Vec<u8>, strategy: &Strategy, subject: &Subject<'_>, id: &str) {
    out.extend_from_slice(b"refund:");
    write_once(out, strategy, subject, id);
}

fn write_once(out: &mut Vec<u8>, strategy: &Strategy, subject: &Subject<'_>, id: &str) {
    out.extend_from_slice(strategy.key_name().as_bytes());
    for part in [id, subject.resource, subject.consumer] {
        out.push(b':');
        write_part(out, part);
    }
}

/// Operations that an id makes idempotent. Ids of different operations are different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A charge, of all its cost or of as much as fits.
    Charge,
    /// A forced debit.
    Debit,
    /// A reservation.
    Reserve,
}

/// Appends the key that remembers a decision by its id.
pub fn write_record_key(
    out: &mut Vec<u8>,
    prefix: KeyPrefix<'_>,
    operation: Operation,
    strategy: &Strategy,
    subject: &Subject<'_>,
    id: &str,
) {
    prefix.write(out);
    write_record_name(out, operation, strategy, subject, id);
}

/// Appends the name of a record: the key without its tag. Like a refund's, it cannot be a limit's.
pub fn write_record_name(
    out: &mut Vec<u8>,
    operation: Operation,
    strategy: &Strategy,
    subject: &Subject<'_>,
    id: &str,
) {
    out.extend_from_slice(match operation {
        Operation::Charge => b"charge:",
        Operation::Debit => b"debit:",
        Operation::Reserve => b"reserve:",
    });
    write_once(out, strategy, subject, id);
}

/// Appends the key of the probe that tests if a node can decide. It has fewer parts than the key of any limit or
/// refund.
pub fn write_probe_key(out: &mut Vec<u8>, prefix: KeyPrefix<'_>, engine: &Engine) {
    prefix.write(out);
    out.extend_from_slice(b"probe:");
    out.extend_from_slice(engine.name().as_bytes());
}

/// Appends the name of a field before its part. No two fields begin alike: a letter and a length, or a name (which
/// has no `=`) and `=`.
fn write_field(out: &mut Vec<u8>, field: &Field) {
    match field {
        Field::Resource => out.push(b'r'),
        Field::Consumer => out.push(b'c'),
        Field::Attribute(name) => {
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
        }
    }
}

/// Appends `length:text`, where the length is that of the escaped text.
pub(super) fn write_part(out: &mut Vec<u8>, text: &str) {
    let escaped = text.bytes().filter(|&byte| !is_plain(byte)).count();
    write_decimal(out, text.len() + 2 * escaped);
    out.push(b':');
    if escaped == 0 {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for byte in text.bytes() {
        if is_plain(byte) {
            out.push(byte);
        } else {
            out.push(b'%');
            out.push(hex_digit(byte >> 4));
            out.push(hex_digit(byte & 15));
        }
    }
}

/// Bytes that are not escaped: printable ASCII except for the escape character and braces.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'%' | b'{' | b'}')
}

fn write_decimal(out: &mut Vec<u8>, number: usize) {
    if number >= 10 {
        write_decimal(out, number / 10);
    }
    out.push(b'0' + (number % 10) as u8);
}

pub(super) const fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}
