//! Keys and hash tags: the one place that turns a request into the name of its state.
//!
//! ```text
//!   weir:{5f0c…16 hex digits…}:tiger-feeding:each:bucket:r25:zewtopia.com/tigerfeeding:c3:bob
//!        └ SipHash of the tag ────┘ strategy  limit engine  └ parts: field, length, escaped text ┘
//! ```
//!
//! Injective: the names before the parts hold no colon, and every part says which field it is (`r` the
//! resource, `c` the consumer, `region=` an attribute) and its length, so that a limit whose scope was
//! changed finds no state of another field that has the same text. The only brace pair is ours and its
//! content is a keyed hash, so no caller can break a tag, forge one, or aim at a chosen slot. Every byte
//! is printable, for whoever reads along in redis-cli.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use siphasher::sip128::{Hasher128 as _, SipHasher13, SipHasher24};

use crate::strategy::{Attributes, Field, Limit, Strategy, Tag};

/// The longest resource, consumer, strategy or attribute that a request may name, in bytes.
pub const MAX_PART: usize = 512;

/// What a request is about: the fields that scopes can name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Subject<'a> {
    /// What is used.
    pub resource: &'a str,
    /// Who uses it.
    pub consumer: &'a str,
    /// The routing group of the resource, if it has one.
    pub group: Option<&'a str>,
    /// Further facts, by name.
    pub attributes: Attributes<'a>,
}

/// The secret that keeps callers from aiming at a slot; the same on all nodes of a deployment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeySecret([u8; 16]);

impl KeySecret {
    /// What is used when nothing is configured. Known to everybody, so it protects from nobody.
    pub const BUILT_IN: Self = Self(*b"weir built-in id");

    /// A secret from a text of any length.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let mut hasher = SipHasher24::new_with_key(&Self::BUILT_IN.0);
        hasher.write(text.as_bytes());
        Self(hasher.finish128().as_bytes())
    }

    /// A secret of this process alone, for digests that never leave it.
    #[must_use]
    pub fn random() -> Self {
        let word = || RandomState::new().hash_one(0_u8);
        Self::from_text(&format!("{:x}{:x}", word(), word()))
    }

    /// The 128-bit keyed hash of every field that the limits of a strategy count by, which with the strategy
    /// is what its keys are made of, and of `whose` they are. A routing group is told by the resource, and is
    /// nothing to keys that do not name it.
    #[must_use]
    pub fn hash_fields(&self, whose: u64, strategy: &Strategy, subject: &Subject<'_>) -> u128 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write_u64(whose);
        let mut part = |text: &str| {
            hasher.write_u64(text.len() as u64);
            hasher.write(text.as_bytes());
        };
        for field in strategy.fields().fields() {
            part(subject.field(field));
        }
        if let Some(group) = subject.group.filter(|_| strategy.fields().has(Field::Resource)) {
            part(group);
        }
        hasher.finish128().as_u128()
    }

    /// The 128-bit keyed hash of `bytes`.
    #[must_use]
    pub fn hash(&self, bytes: &[u8]) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(bytes);
        hasher.finish128().as_u128()
    }
}

impl KeySecret {
    /// Another keyed hash of `bytes`, with fewer rounds: for digests that never leave the process, which
    /// nobody can therefore look for collisions of.
    #[must_use]
    pub fn digest(&self, bytes: &[u8]) -> u128 {
        self.digester().and(bytes).finish()
    }

    /// The digest of nothing yet.
    pub(crate) fn digester(&self) -> Digester {
        Digester(SipHasher13::new_with_key(&self.0))
    }
}

/// A digest of what begins with the bytes so far. A copy goes on with others.
#[derive(Clone, Copy)]
pub(crate) struct Digester(SipHasher13);

impl Digester {
    /// The same, and `bytes` behind it.
    #[inline]
    pub(crate) fn and(mut self, bytes: &[u8]) -> Self {
        self.0.write(bytes);
        self
    }

    #[inline]
    pub(crate) fn finish(self) -> u128 {
        self.0.finish128().as_u128()
    }
}

impl std::fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

/// Appends the full key of one limit: what Redis stores it under.
pub fn write_key(out: &mut Vec<u8>, tag: u128, strategy: &Strategy, limit: &Limit, subject: &Subject<'_>) {
    out.extend_from_slice(b"weir:{");
    write_hex(out, tag);
    out.extend_from_slice(b"}:");
    write_name(out, strategy, limit, subject);
}

/// Appends what tells the keys of all strategies and limits apart: the key without its tag.
pub fn write_name(out: &mut Vec<u8>, strategy: &Strategy, limit: &Limit, subject: &Subject<'_>) {
    for name in [strategy.name(), &limit.name, limit.algorithm.engine().name()] {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
    }
    for (index, field) in limit.scope.fields().iter().enumerate() {
        if index > 0 {
            out.push(b':');
        }
        write_field(out, field);
        write_part(out, subject.field(field));
    }
}

/// Appends the same as [`write_name`] of limit number `index` for machines alone: every part as it is,
/// behind its length, and which field it is as a letter. For digests that never leave the process, where
/// nobody reads along.
#[inline]
pub fn write_identity(out: &mut Vec<u8>, strategy: &Strategy, index: usize, subject: &Subject<'_>) {
    let begun = begin_identity(out, strategy, index, subject.resource);
    end_identity(out, strategy, index, subject, begun);
}

/// Appends what [`write_identity`] does for every subject with this resource; says how many fields that has.
#[inline]
pub(crate) fn begin_identity(out: &mut Vec<u8>, strategy: &Strategy, index: usize, resource: &str) -> usize {
    let Some(limit) = strategy.limits().get(index) else { return 0 };
    out.extend_from_slice(strategy.identity(index));
    let by_resource = matches!(limit.scope.fields(), [Field::Resource, ..]);
    if by_resource {
        write_sized(out, b'r', resource);
    }
    usize::from(by_resource)
}

/// Appends the rest of what [`write_identity`] does, after the first `begun` fields.
#[inline]
pub(crate) fn end_identity(
    out: &mut Vec<u8>,
    strategy: &Strategy,
    index: usize,
    subject: &Subject<'_>,
    begun: usize,
) {
    let Some(limit) = strategy.limits().get(index) else { return };
    for field in limit.scope.fields().iter().skip(begun) {
        match field {
            Field::Resource => write_sized(out, b'r', subject.resource),
            Field::Consumer => write_sized(out, b'c', subject.consumer),
            Field::Attribute(name) => {
                write_sized(out, b'a', name);
                write_sized(out, b'v', subject.attributes.get(name));
            }
        }
    }
}

/// What the identities of all keys of one limit begin with.
pub(crate) fn identity(strategy: &str, limit: &Limit) -> Box<[u8]> {
    let mut out = Vec::new();
    write_sized(&mut out, b's', strategy);
    write_sized(&mut out, b'l', &limit.name);
    write_sized(&mut out, b'e', limit.algorithm.engine().name());
    out.into()
}

#[inline]
fn write_sized(out: &mut Vec<u8>, kind: u8, text: &str) {
    // Names and parts have bounds far below what four bytes count.
    let [a, b, c, d] = (text.len() as u32).to_le_bytes();
    out.extend_from_slice(&[kind, a, b, c, d]);
    out.extend_from_slice(text.as_bytes());
}

/// Appends the full key that remembers a refund by its id.
pub fn write_refund_key(out: &mut Vec<u8>, tag: u128, strategy: &Strategy, subject: &Subject<'_>, id: &str) {
    out.extend_from_slice(b"weir:{");
    write_hex(out, tag);
    out.extend_from_slice(b"}:");
    write_refund_name(out, strategy, subject, id);
}

/// Appends what tells refunds apart: the key without its tag. Where a limit's name has its engine, this
/// one has a length, so it is no limit's, also not of a strategy named `refund`.
pub fn write_refund_name(out: &mut Vec<u8>, strategy: &Strategy, subject: &Subject<'_>, id: &str) {
    out.extend_from_slice(b"refund:");
    out.extend_from_slice(strategy.name().as_bytes());
    for part in [id, subject.resource, subject.consumer] {
        out.push(b':');
        write_part(out, part);
    }
}

/// Where a key stands in a window that is spread over its keys: below 2^52, and of its name only, so that
/// it is the same on all nodes, in both stores, after every restart, and whatever the secret.
#[must_use]
pub fn phase(name: &[u8]) -> u64 {
    (KeySecret::BUILT_IN.hash(name) >> 76) as u64
}

/// Appends what the tag is the hash of.
pub fn write_tag(out: &mut Vec<u8>, strategy: &Strategy, subject: &Subject<'_>) {
    let mut part = |kind: u8, text: &str| {
        out.push(kind);
        out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    };
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

impl<'a> Subject<'a> {
    /// The value of `field`; empty if the request has none.
    #[must_use]
    pub fn field(&self, field: &Field) -> &'a str {
        match field {
            Field::Resource => self.resource,
            Field::Consumer => self.consumer,
            Field::Attribute(name) => self.attributes.get(name),
        }
    }
}

/// Appends which field the part after it is. No two fields begin alike: a letter and a length, or a name
/// (which has no `=`) and `=`.
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
fn write_part(out: &mut Vec<u8>, text: &str) {
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

/// Bytes that stand for themselves: printable ASCII but the escape itself and braces.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'%' | b'{' | b'}')
}

fn write_decimal(out: &mut Vec<u8>, number: usize) {
    if number >= 10 {
        write_decimal(out, number / 10);
    }
    out.push(b'0' + (number % 10) as u8);
}

/// The lower half of a tag: enough to spread slots, and every byte of a key costs Redis at each of its
/// commands. What tells keys apart stands after it.
fn write_hex(out: &mut Vec<u8>, tag: u128) {
    out.extend((0..16).rev().map(|digit| hex_digit((tag >> (4 * digit)) as u8 & 15)));
}

const fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}

/// The Redis Cluster slot of every key with this tag: CRC16 of the tag's hex digits, modulo 16384.
#[must_use]
pub fn slot(tag: u128) -> u16 {
    let mut hex = Vec::with_capacity(16);
    write_hex(&mut hex, tag);
    crc16::State::<crc16::XMODEM>::calculate(&hex) % 16384
}
