//! Names of leases.

use super::name::write_rest;
use super::{KeyPrefix, KeySecret, Subject, kind};
use crate::strategy::{CONCURRENCY, Strategy};

/// Appends the two keys of a strategy's leases, and returns where the first one ends: the key of the records, then
/// that of the ends. Both are in one slot.
pub fn write_lease_keys(
    out: &mut Vec<u8>,
    prefix: KeyPrefix<'_>,
    strategy: &Strategy,
    subject: &Subject<'_>,
) -> usize {
    let mut write = |kind| {
        prefix.write(out);
        write_name_of(out, kind, strategy, subject);
        out.len()
    };
    let first = write(kind::LEASES);
    write(kind::LEASE_ENDS);
    first
}

/// Appends the keys of the probe that tests if a node can keep leases, and returns where the first one ends. They
/// begin with a small letter, and so are of no kind.
pub fn write_lease_probe_keys(out: &mut Vec<u8>, prefix: KeyPrefix<'_>) -> usize {
    let mut write = |kind: &str| {
        prefix.write(out);
        out.extend_from_slice(b"probe:");
        out.extend_from_slice(kind.as_bytes());
        out.len()
    };
    let first = write("leases");
    write("lease_ends");
    first
}

/// Appends the name of a strategy's and a subject's leases: the key of the records without its tag.
pub fn write_lease_name(out: &mut Vec<u8>, strategy: &Strategy, subject: &Subject<'_>) {
    write_name_of(out, kind::LEASES, strategy, subject);
}

fn write_name_of(out: &mut Vec<u8>, kind: u8, strategy: &Strategy, subject: &Subject<'_>) {
    out.push(kind);
    write_rest(out, strategy, CONCURRENCY, strategy.fields(), subject);
}

/// Jitter from a half to one, derived from a lease's name and id only: the same on all nodes and in both stores, but
/// different from lease to lease. It sets the time after which Vegas measures the shortest round trip again.
pub fn lease_jitter(strategy: &Strategy, subject: &Subject<'_>, id: &str) -> f64 {
    const STEPS: u128 = 1 << 20;
    let mut name = Vec::with_capacity(128);
    write_lease_name(&mut name, strategy, subject);
    name.push(b'#');
    name.extend_from_slice(id.as_bytes());
    let step = KeySecret::BUILT_IN.hash(&name) % STEPS;
    0.5 + step as f64 / (2 * STEPS) as f64
}
