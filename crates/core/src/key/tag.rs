//! Hash tags, which keep all keys of a strategy in one slot of a cluster; and slots.

use super::Subject;
use super::name::hex_digit;
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

/// The lower half of a tag: enough to spread slots, and every byte of a key costs Redis at each command. The parts
/// after the tag identify the key.
pub(super) fn write_hex(out: &mut Vec<u8>, tag: u128) {
    out.extend((0..16).rev().map(|digit| hex_digit((tag >> (4 * digit)) as u8 & 15)));
}

/// The Redis Cluster slot of every key with this tag: CRC16 of the tag's hex digits, modulo 16384.
#[must_use]
pub fn slot(tag: u128) -> u16 {
    let mut hex = Vec::with_capacity(16);
    write_hex(&mut hex, tag);
    slot_of(&hex)
}

/// The Redis Cluster slot of [`Namespace::fingerprint_key`](super::Namespace::fingerprint_key).
#[must_use]
pub fn fingerprint_slot() -> u16 {
    slot_of(b"key_secret")
}

/// The Redis Cluster slot of [`Namespace::usage_key`](super::Namespace::usage_key).
#[must_use]
pub fn usage_slot() -> u16 {
    slot_of(b"usage")
}

/// The Redis Cluster slot of [`Namespace::control_key`](super::Namespace::control_key).
#[must_use]
pub fn control_slot() -> u16 {
    slot_of(b"control")
}

fn slot_of(tag: &[u8]) -> u16 {
    crc16::State::<crc16::XMODEM>::calculate(tag) % 16384
}
