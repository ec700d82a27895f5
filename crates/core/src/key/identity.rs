//! Identities: names of states that are only hashed, and never read by people.

use super::Subject;
use super::kind;
use crate::strategy::{Field, Strategy, write_sized};

/// Appends the same parts as [`write_name`](super::write_name) of limit number `index`, but unescaped: each after its
/// length, and a letter for its field. For digests that never leave the process.
#[inline]
pub fn write_identity(out: &mut Vec<u8>, strategy: &Strategy, index: usize, subject: &Subject<'_>) {
    let begun = begin_identity(out, strategy, index, subject.resource);
    end_identity(out, strategy, index, subject, begun);
}

/// Appends the identity of what open holds have of limit number `index`. A limit of another engine has another one.
pub fn write_parts_identity(out: &mut Vec<u8>, strategy: &Strategy, index: usize, subject: &Subject<'_>) {
    let Some(limit) = strategy.limits().get(index) else { return };
    out.extend_from_slice(&[kind::PARTS, kind::of_engine(limit.algorithm.engine().kind())]);
    write_identity(out, strategy, index, subject);
}

/// Appends the beginning of [`write_identity`] that all subjects with this resource share; returns its number of
/// fields.
#[inline]
pub fn begin_identity(out: &mut Vec<u8>, strategy: &Strategy, index: usize, resource: &str) -> usize {
    let Some(limit) = strategy.limits().get(index) else { return 0 };
    out.extend_from_slice(strategy.identity(index));
    let by_resource = matches!(limit.scope.fields(), [Field::Resource, ..]);
    if by_resource {
        write_sized(out, b'r', resource);
    }
    usize::from(by_resource)
}

/// Appends the rest of [`write_identity`], after the first `begun` fields.
#[inline]
pub fn end_identity(
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
