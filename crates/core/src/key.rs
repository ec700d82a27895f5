//! Keys and hash tags: the one place that turns a request into the name of its state.
//!
//! ```text
//!   weir:{k3-Z}Btiger-feeding:each|Rzewtopia.com/tigerfeeding|Cbob
//!   namespace   strategy      limit
//!         tag  kind                parts: field and escaped text
//! ```
//!
//! Beside the namespace, the names and the caller's texts, the key of a limit by resource and consumer has 13 bytes.
//!
//! Injective: every kind of key has its own letter, the names before the parts hold neither colon nor bar, and every part
//! begins with a bar, which none contains, and says which field it is (`R` the resource, `C` the consumer, `region=` an
//! attribute), so that a limit whose scope was changed finds no state of another field that has the same text. The only
//! brace pair is ours and its content is a keyed hash, so no caller can break a tag, forge one, or aim at a chosen slot.
//! Every byte is printable, for people who read keys in redis-cli.

mod identity;
mod kind;
mod lease;
mod name;
mod namespace;
mod placement;
mod queue;
mod secret;
mod tag;

pub use identity::{begin_identity, end_identity, write_identity, write_parts_identity};
pub use kind::Operation;
pub use lease::{lease_jitter, write_lease_keys, write_lease_name, write_lease_probe_keys};
pub use name::{
    places_tag, write_held_key, write_hold_key, write_hold_name, write_key, write_name, write_parts_key,
    write_places_key, write_probe_key, write_record_key, write_record_name, write_refund_key,
    write_refund_name,
};
pub use namespace::{KeyPrefix, MAX_NAMESPACE, Namespace, NamespaceError};
pub use placement::{Apart, MAX_SHARDS, NoPartFree, Placements, SlotPart};
pub use queue::{QueueKeys, queue_tag, write_put_digest_key, write_put_id_key};
pub use secret::{Digester, KeySecret};
pub use tag::{TAG_LENGTH, control_slot, fingerprint_slot, slot, usage_slot, write_tag};

use crate::strategy::{Attributes, Field};

/// The longest resource, consumer, strategy or attribute that a request may name, in bytes.
pub const MAX_PART: usize = 512;

/// Subject of a request: the fields that scopes can name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The resource.
    pub resource: &'a str,
    /// The consumer.
    pub consumer: &'a str,
    /// The routing group of the resource, if it has one.
    pub group: Option<&'a str>,
    /// Attributes by name.
    pub attributes: Attributes<'a>,
}

impl<'a> Subject<'a> {
    /// The value of `field`; empty if the request has none.
    pub fn field(&self, field: &Field) -> &'a str {
        match field {
            Field::Resource => self.resource,
            Field::Consumer => self.consumer,
            Field::Attribute(name) => self.attributes.get(name),
        }
    }
}

/// Phase of a key in a spread window: below 2^52, derived from its name only, so that it is the same on all nodes, in
/// both stores, after every restart, and under any secret.
pub fn phase(name: &[u8]) -> u64 {
    (KeySecret::BUILT_IN.hash(name) >> 76) as u64
}
