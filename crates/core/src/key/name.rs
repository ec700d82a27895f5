//! Names of states in Redis.

use super::tag::write_places;
use super::{KeyPrefix, KeySecret, Operation, Subject, kind};
use crate::algorithm::Engine;
use crate::approximate::ApproximateBound;
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
    out.push(kind::HELD);
    write_rest(out, strategy, &limit.name, &limit.scope, subject);
}

/// Appends the key of what open holds have of a limit. A limit of another engine or scope has other parts.
pub fn write_parts_key(
    out: &mut Vec<u8>,
    prefix: KeyPrefix<'_>,
    strategy: &Strategy,
    limit: &Limit,
    subject: &Subject<'_>,
) {
    prefix.write(out);
    out.push(kind::PARTS);
    out.push(kind::of_engine(limit.algorithm.engine().kind()));
    write_rest(out, strategy, &limit.name, &limit.scope, subject);
}

/// Appends the name of a limit's state: the key without its tag.
pub fn write_name(out: &mut Vec<u8>, strategy: &Strategy, limit: &Limit, subject: &Subject<'_>) {
    match strategy.approximate() {
        Some(rule) => write_approximate(out, &rule.bound),
        None => out.push(kind::of_engine(limit.algorithm.engine().kind())),
    }
    write_rest(out, strategy, &limit.name, &limit.scope, subject);
}

/// Appends the kind of a limit that nodes count, with its numbers: other numbers, or a window of another length, must not
/// meet its state.
fn write_approximate(out: &mut Vec<u8>, bound: &ApproximateBound) {
    let numbers = format!("{},{},{}:", bound.max_over(), bound.nodes(), bound.window());
    out.push(kind::APPROXIMATE);
    out.extend_from_slice(numbers.as_bytes());
}

/// Hash tag of the places of a strategy's nodes.
pub fn places_tag(secret: &KeySecret, strategy: &str) -> u128 {
    let mut text = Vec::with_capacity(64);
    write_places(&mut text, strategy);
    secret.hash(&text)
}

/// Appends the key of the places of the nodes that count a strategy, by its name in keys.
pub fn write_places_key(out: &mut Vec<u8>, prefix: KeyPrefix<'_>, strategy: &str, bound: &ApproximateBound) {
    prefix.write(out);
    out.push(kind::PLACES);
    write_approximate(out, bound);
    out.extend_from_slice(strategy.as_bytes());
}

/// Appends what follows the kind: the names, which have neither colon nor bar, and the fields.
pub(super) fn write_rest(
    out: &mut Vec<u8>,
    strategy: &Strategy,
    limit: &str,
    scope: &Scope,
    subject: &Subject<'_>,
) {
    out.extend_from_slice(strategy.key_name().as_bytes());
    out.push(b':');
    out.extend_from_slice(limit.as_bytes());
    for field in scope.fields() {
        out.push(SEPARATOR);
        write_field(out, field);
        write_escaped(out, subject.field(field));
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

/// Appends the name of a refund: the key without its tag.
pub fn write_refund_name(out: &mut Vec<u8>, strategy: &Strategy, subject: &Subject<'_>, id: &str) {
    write_once(out, kind::REFUND, strategy, subject, id);
}

fn write_once(out: &mut Vec<u8>, kind: u8, strategy: &Strategy, subject: &Subject<'_>, id: &str) {
    out.push(kind);
    out.extend_from_slice(strategy.key_name().as_bytes());
    for part in [id, subject.resource, subject.consumer] {
        out.push(SEPARATOR);
        write_escaped(out, part);
    }
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

/// Appends the name of a record: the key without its tag.
pub fn write_record_name(
    out: &mut Vec<u8>,
    operation: Operation,
    strategy: &Strategy,
    subject: &Subject<'_>,
    id: &str,
) {
    write_once(out, kind::of_operation(operation), strategy, subject, id);
}

/// Appends the key of the record of a hold by its id.
pub fn write_hold_key(
    out: &mut Vec<u8>,
    prefix: KeyPrefix<'_>,
    strategy: &Strategy,
    subject: &Subject<'_>,
    id: &str,
) {
    prefix.write(out);
    write_hold_name(out, strategy, subject, id);
}

/// Appends the name of the record of a hold: the key without its tag.
pub fn write_hold_name(out: &mut Vec<u8>, strategy: &Strategy, subject: &Subject<'_>, id: &str) {
    write_once(out, kind::HOLD, strategy, subject, id);
}

/// Appends the key of the probe that tests if a node can decide. It begins with a small letter, and so is of no kind.
pub fn write_probe_key(out: &mut Vec<u8>, prefix: KeyPrefix<'_>, engine: &Engine) {
    prefix.write(out);
    out.extend_from_slice(b"probe:");
    out.extend_from_slice(engine.name().as_bytes());
}

/// Appends what a field begins with. No two begin alike: names of attributes begin with a small letter and have no `=`.
fn write_field(out: &mut Vec<u8>, field: &Field) {
    match field {
        Field::Resource => out.push(b'R'),
        Field::Consumer => out.push(b'C'),
        Field::Attribute(name) => {
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
        }
    }
}

/// Byte before each part of a key that callers choose.
pub(super) const SEPARATOR: u8 = b'|';

/// Appends a text of a caller's, which so has no separator and no brace.
pub(super) fn write_escaped(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(is_plain) {
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

/// Bytes that are not escaped: printable ASCII except for the escape character, braces and the separator.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'%' | b'{' | b'}' | SEPARATOR)
}

const fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}
