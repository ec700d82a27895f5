//! Placement of routing groups in a cluster whose slots are split evenly among its shards.
//!
//! A group's slot is a hash, so two groups may share a shard. Groups that must lie apart get a suffix in the hashed
//! text: the first one that moves them into a part of their own. It depends only on the names, the number of shards
//! and the secret, so every node finds the same one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::tag::{slot, write_group, write_tag};
use super::{KeySecret, Subject};
use crate::strategy::{Field, Strategy, Tag};

/// Most shards for a placement. A tag of a group and further fields tries as many suffixes on average.
pub const MAX_SHARDS: u16 = 1000;

const SLOTS: u32 = 16_384;

/// Suffixes tried per shard. The probability that none fits is e^-64.
const TRIES_PER_SHARD: u32 = 64;

/// The groups that must lie apart, each with the others. The relation is symmetric.
pub type Apart = BTreeMap<String, BTreeSet<String>>;

/// Placement of the groups that must lie apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placements {
    /// Number of shards; 0 if it is not configured.
    shards: u16,
    groups: BTreeMap<Box<str>, GroupPlacement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct GroupPlacement {
    part: u16,
    /// Suffix of the tag of the group alone; 0 is none.
    suffix: u32,
}

/// One of the equal parts of all slots, served by a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotPart {
    /// Index of the part, from 0.
    pub number: u16,
    /// Number of parts.
    pub shards: u16,
    /// The slots.
    pub slots: RangeInclusive<u16>,
}

/// A group without a free part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("every one of the {shards} shards has a group that `{group}` must be apart from")]
pub struct NoPartFree {
    /// The name.
    pub group: String,
    /// Number of parts.
    pub shards: u16,
}

impl Placements {
    /// No placements among `shards` shards.
    pub fn among(shards: u16) -> Self {
        Self { shards, groups: BTreeMap::new() }
    }

    /// Number of shards, if it is known.
    pub fn shards(&self) -> Option<u16> {
        Some(self.shards).filter(|shards| *shards > 0)
    }

    /// Places the groups of `apart` among `shards` shards, in order of name.
    pub fn new(secret: &KeySecret, shards: u16, apart: &Apart) -> Result<Self, NoPartFree> {
        let mut placed = Self::among(shards);
        let mut others: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (one, group) in
            apart.iter().flat_map(|(one, others)| others.iter().map(move |other| (one, other)))
        {
            others.entry(one).or_default().insert(group);
            others.entry(group).or_default().insert(one);
        }
        for (group, others) in others {
            let taken = |part: u16| others.iter().any(|other| placed.part_of_group(other) == Some(part));
            let free: Vec<bool> = (0..shards).map(|part| !taken(part)).collect();
            let is_free = |part: u16| free.get(usize::from(part)).is_some_and(|free| *free);
            let refused = || NoPartFree { group: group.to_owned(), shards };
            if !free.contains(&true) {
                return Err(refused());
            }
            let mut text = Vec::new();
            write_group(&mut text, group);
            let (suffix, tag) = placed.search(secret, &mut text, is_free).ok_or_else(refused)?;
            placed.groups.insert(group.into(), GroupPlacement { part: part_of(slot(tag), shards), suffix });
        }
        Ok(placed)
    }

    /// The hash tag of every key of a decision. `text` is a scratch buffer.
    pub fn tag(
        &self,
        secret: &KeySecret,
        strategy: &Strategy,
        subject: &Subject<'_>,
        text: &mut Vec<u8>,
    ) -> u128 {
        text.clear();
        write_tag(text, strategy, subject);
        let Some((placement, is_alone)) = self.placement(strategy, subject) else { return secret.hash(text) };
        if is_alone {
            write_suffix(text, placement.suffix);
            return secret.hash(text);
        }
        let plain = secret.hash(text);
        // Too unlikely to be seen; the keys then lie where they would without a placement.
        self.search(secret, text, |part| part == placement.part).map_or(plain, |(_, tag)| tag)
    }

    /// The part that contains `slot`, if the number of shards is known.
    pub fn part(&self, slot: u16) -> Option<SlotPart> {
        let shards = self.shards()?;
        let number = part_of(slot, shards);
        let (first, next) = (begin_of(number, shards), begin_of(number + 1, shards));
        // A part ends before slot 16,384, so that it fits.
        Some(SlotPart { number, shards, slots: first as u16..=next.saturating_sub(1) as u16 })
    }

    /// The placement of `group`; `None` if it need not lie apart from another.
    pub fn part_of_group(&self, group: &str) -> Option<u16> {
        self.groups.get(group).map(|placement| placement.part)
    }

    /// The placement of a decision's group; true if the tag is of the group alone.
    fn placement(&self, strategy: &Strategy, subject: &Subject<'_>) -> Option<(&GroupPlacement, bool)> {
        let placement = self.groups.get(subject.group.filter(|_| !self.groups.is_empty())?)?;
        let Tag::Fields(scope) = strategy.tag() else { return None };
        scope.has(Field::Resource).then_some((placement, scope.fields().len() == 1))
    }

    /// The first suffix of `text` whose tag lies in a part accepted by `fits`, and this tag.
    fn search(
        &self,
        secret: &KeySecret,
        text: &mut Vec<u8>,
        fits: impl Fn(u16) -> bool,
    ) -> Option<(u32, u128)> {
        let length = text.len();
        for suffix in 0..TRIES_PER_SHARD * u32::from(self.shards) {
            text.truncate(length);
            write_suffix(text, suffix);
            let tag = secret.hash(text);
            if fits(part_of(slot(tag), self.shards)) {
                return Some((suffix, tag));
            }
        }
        None
    }
}

/// Empty for suffix 0. No field of a tag begins with `#`.
fn write_suffix(text: &mut Vec<u8>, suffix: u32) {
    if suffix > 0 {
        text.push(b'#');
        text.extend_from_slice(&suffix.to_le_bytes());
    }
}

/// The first slot of a part: round(part · 16384 / shards), as `redis-cli --cluster create` has it.
fn begin_of(part: u16, shards: u16) -> u32 {
    let shards = u32::from(shards).max(1);
    (2 * u32::from(part) * SLOTS + shards) / (2 * shards)
}

fn part_of(slot: u16, shards: u16) -> u16 {
    // Rounding moves a boundary by less than one slot, so that the part is this one or the next.
    let about = (u32::from(slot) * u32::from(shards) / SLOTS) as u16;
    about + u16::from(u32::from(slot) >= begin_of(about + 1, shards))
        - u16::from(u32::from(slot) < begin_of(about, shards))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_redis_cli() {
        // redis-cli --cluster create with three masters prints these ranges.
        let begins = |shards| (0..=shards).map(|part| begin_of(part, shards)).collect::<Vec<_>>();
        assert_eq!(begins(3), [0, 5461, 10_923, 16_384]);
        assert_eq!(begins(7), [0, 2341, 4681, 7022, 9362, 11_703, 14_043, 16_384]);
    }

    #[test]
    fn every_slot_is_in_the_part_that_begins_last_before_it() {
        for shards in [1, 2, 3, 5, 7, 64, 333, 999, MAX_SHARDS] {
            let mut part = 0;
            for slot in 0..SLOTS {
                while slot >= begin_of(part + 1, shards) {
                    part += 1;
                }
                assert_eq!(part_of(slot as u16, shards), part, "slot {slot} of {shards} shards");
            }
            assert_eq!(part + 1, shards);
        }
    }

    fn apart(pairs: &[(&str, &[&str])]) -> Apart {
        let set = |others: &[&str]| others.iter().map(|&other| other.to_owned()).collect();
        pairs.iter().map(|(one, others)| ((*one).to_owned(), set(others))).collect()
    }

    /// Groups are placed in order of name, each by its first suffix that fits, in whatever order the file names them.
    #[test]
    fn a_group_gets_the_first_suffix_that_fits() {
        let mut moved = 0;
        for number in 0..200 {
            let secret = KeySecret::from_text(&number.to_string());
            let placed = Placements::new(&secret, 3, &apart(&[("geese", &["ducks"]), ("swans", &["geese"])]));
            let placed = placed.unwrap();
            let at = |group: &str, suffix: u32| {
                let mut text = Vec::new();
                write_group(&mut text, group);
                write_suffix(&mut text, suffix);
                part_of(slot(secret.hash(&text)), 3)
            };
            let ducks = at("ducks", 0);
            let geese = (0..).find(|&suffix| at("geese", suffix) != ducks).unwrap();
            let part = at("geese", geese);
            let swans = (0..).find(|&suffix| at("swans", suffix) != part).unwrap();
            for (group, suffix) in [("ducks", 0), ("geese", geese), ("swans", swans)] {
                assert_eq!(
                    placed.groups[group],
                    GroupPlacement { part: at(group, suffix), suffix },
                    "{group}"
                );
            }
            moved += usize::from(geese > 0);
        }
        assert!((30..110).contains(&moved), "about a third of the geese need a suffix: {moved}");
    }

    #[test]
    fn as_many_groups_as_shards_lie_apart_and_no_more() {
        let secret = KeySecret::BUILT_IN;
        let three = apart(&[("a", &["b", "c"]), ("b", &["c"])]);
        let placed = Placements::new(&secret, 3, &three).unwrap();
        let parts: BTreeSet<u16> =
            ["a", "b", "c"].iter().filter_map(|one| placed.part_of_group(one)).collect();
        assert_eq!(parts.len(), 3);
        let four = apart(&[("a", &["b", "c", "d"]), ("b", &["c", "d"]), ("c", &["d"])]);
        let refused = Placements::new(&secret, 3, &four).unwrap_err();
        assert_eq!(refused, NoPartFree { group: "d".to_owned(), shards: 3 });
    }
}
