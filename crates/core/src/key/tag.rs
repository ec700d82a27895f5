//! Hash tags, which keep all keys of a strategy in one slot of a cluster; and slots.

use super::Subject;
use crate::strategy::{Field, Strategy, Tag};

/// Appends the hashed text of the tag.
pub fn write_tag(out: &mut Vec<u8>, strategy: &Strategy, subject: &Subject<'_>) {
    let mut part = |kind: u8, text: &str| write_part(out, kind, text);
    match strategy.tag() {
        Tag::Strategy(name) => part(b's', name),
        Tag::Fields(scope) => {
            for field in scope.fields() {
                match (field, subject.group) {
                    (Field::Resource, Some(group)) => part(b'g', group),
                    (Field::Resource, None) => part(b'r', subject.resource),
                    (Field::Consumer, _) => part(b'c', subject.consumer),
                    (Field::Attribute(name), _) => {
                        part(b'a', name);
                        part(b'v', subject.attributes.get(name));
                    }
                }
            }
        }
    }
}

/// Appends the hashed text of the tag of a routing group alone.
pub(super) fn write_group(out: &mut Vec<u8>, group: &str) {
    write_part(out, b'g', group);
}

/// Appends the hashed text of the tag of a strategy's places.
pub(super) fn write_places(out: &mut Vec<u8>, strategy: &str) {
    write_part(out, b'p', strategy);
}

/// Appends the hashed text of a queue's tag.
pub(super) fn write_queue(out: &mut Vec<u8>, queue: &str) {
    write_part(out, b'q', queue);
}

fn write_part(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Characters of a tag in a key.
pub const TAG_LENGTH: usize = 4;

/// The digits of a tag, in base 64.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Appends the lower 24 bits of a tag: enough to spread slots evenly, and every byte of a key costs Redis memory, and time
/// at each command. What follows the tag identifies the key.
pub(super) fn write_digits(out: &mut Vec<u8>, tag: u128) {
    out.extend((0..TAG_LENGTH).rev().map(|digit| DIGITS[(tag >> (6 * digit)) as usize & 63]));
}

/// The Redis Cluster slot of every key with this tag: CRC16 of the tag's digits, modulo 16384.
pub fn slot(tag: u128) -> u16 {
    let mut digits = Vec::with_capacity(TAG_LENGTH);
    write_digits(&mut digits, tag);
    slot_of(&digits)
}

/// The Redis Cluster slot of [`Namespace::fingerprint_key`](super::Namespace::fingerprint_key).
pub fn fingerprint_slot() -> u16 {
    slot_of(b"key_secret")
}

/// The Redis Cluster slot of [`Namespace::usage_key`](super::Namespace::usage_key).
pub fn usage_slot() -> u16 {
    slot_of(b"usage")
}

/// The Redis Cluster slot of [`Namespace::control_key`](super::Namespace::control_key).
pub fn control_slot() -> u16 {
    slot_of(b"control")
}

fn slot_of(tag: &[u8]) -> u16 {
    crc16::State::<crc16::XMODEM>::calculate(tag) % 16384
}
