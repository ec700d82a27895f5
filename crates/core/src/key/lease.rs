//! Names of leases.

use super::name::write_fields;
use super::{KeyPrefix, KeySecret, Subject};
use crate::strategy::{CONCURRENCY, Strategy};

/// Where a limit's name has its engine, the first key of a strategy's leases has this: no engine has such a name.
const RECORDS: &str = "lease";

/// The same of the second key.
const ENDS: &str = "lease_ends";

/// Appends the full keys of a strategy's leases, and returns where the first one ends: first that of their records,
/// then that of their ends. Both are in one slot.
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
    let first = write(RECORDS);
    write(ENDS);
    first
}

/// Appends the full keys of the leases by which this process finds out whether a node can keep leases, and returns where
/// the first one ends. They have fewer parts than the keys of any strategy's leases.
pub fn write_lease_probe_keys(out: &mut Vec<u8>, prefix: KeyPrefix<'_>) -> usize {
    let mut write = |kind: &str| {
        prefix.write(out);
        out.extend_from_slice(b"probe:");
        out.extend_from_slice(kind.as_bytes());
        out.len()
    };
    let first = write(RECORDS);
    write(ENDS);
    first
}

/// Appends what distinguishes the leases of all strategies and subjects: the key of the records without its tag.
pub fn write_lease_name(out: &mut Vec<u8>, strategy: &Strategy, subject: &Subject<'_>) {
    write_name_of(out, RECORDS, strategy, subject);
}

fn write_name_of(out: &mut Vec<u8>, kind: &str, strategy: &Strategy, subject: &Subject<'_>) {
    for name in [strategy.name(), CONCURRENCY, kind] {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
    }
    write_fields(out, strategy.fields(), subject);
}

/// A number from a half to one, of a lease's name and id only: so it is the same on all nodes and in both stores, and
/// still differs from lease to lease. Vegas measures the shortest round trip again after a time that depends on it.
#[must_use]
pub fn lease_jitter(strategy: &Strategy, subject: &Subject<'_>, id: &str) -> f64 {
    const STEPS: u128 = 1 << 20;
    let mut name = Vec::with_capacity(128);
    write_lease_name(&mut name, strategy, subject);
    name.push(b'#');
    name.extend_from_slice(id.as_bytes());
    let step = KeySecret::BUILT_IN.hash(&name) % STEPS;
    0.5 + step as f64 / (2 * STEPS) as f64
}
