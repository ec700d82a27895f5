//! The definition of holds: a list of everything that is open, and levels by limit and key.

use std::collections::{BTreeMap, HashMap};

pub const SECOND: u64 = 1_000_000;
/// `hold.max / 16`, before it changes.
pub const GRAIN: u64 = 10 * SECOND;
pub const KNOWN_FOR: u64 = 200 * SECOND;

/// The limits of every trace. Costs: 0 is fixed at 1, others are named.
#[derive(Clone, Copy)]
pub struct Defined {
    pub per_team: bool,
    pub limit: u64,
    /// The window; a bucket of one unit a second if 0.
    pub window: u64,
    pub cost: Option<usize>,
    pub at_once: bool,
    pub shadow: bool,
}

const fn defined(per_team: bool, limit: u64, window: u64, cost: Option<usize>) -> Defined {
    Defined { per_team, limit, window, cost, at_once: false, shadow: false }
}

pub const LIMITS: [Defined; 6] = [
    defined(false, 12, 60 * SECOND, None),
    defined(false, 100, 60 * SECOND, Some(0)),
    defined(true, 150, 0, Some(0)),
    Defined { at_once: true, ..defined(false, 80, 0, Some(1)) },
    defined(true, 200, 600 * SECOND, Some(1)),
    Defined { shadow: true, ..defined(false, 60, 60 * SECOND, Some(0)) },
];

pub type Key = (usize, u64);

/// One part of an open hold.
#[derive(Clone, Copy, PartialEq)]
pub struct OpenPart {
    pub units: u64,
    pub end: u64,
    /// False if a reset removed it.
    pub is_there: bool,
}

/// An id.
#[derive(Clone)]
pub struct Known {
    pub end: u64,
    pub until: u64,
    pub asked: Option<[(u64, Option<u64>); 2]>,
    pub settled: Option<([Option<u64>; 2], &'static str)>,
    /// By limit and key: granted (none of a limit in shadow mode), what was charged at once, and the part.
    pub entries: BTreeMap<Key, (Option<u64>, u64, Option<OpenPart>)>,
    pub charged: BTreeMap<Key, Option<u64>>,
}

/// Everything, by the definition.
#[derive(Default)]
pub struct Definition {
    /// The changes of the limits so far.
    pub change: Change,
    /// Level and time of it; of a bucket in millionths.
    pub used: HashMap<Key, (u64, u64)>,
    pub ids: HashMap<u64, Known>,
    /// Units above the debt that limits take, in all.
    pub uncharged: u64,
}

/// Changes of the configuration since the beginning: each limit, and `hold.max`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Change {
    #[default]
    None,
    Half,
    Double,
}

impl Change {
    pub const fn apply(self, number: u64) -> u64 {
        match self {
            Self::None => number,
            Self::Half => number / 2,
            Self::Double => 2 * number,
        }
    }

    /// An id that was settled is known until the hold would have ended, so the list of ids has all parts.
    pub const fn grain(self) -> u64 {
        if matches!(self, Self::Half) { GRAIN / 2 } else { GRAIN }
    }
}

impl Definition {
    pub const fn limit(&self, index: usize) -> u64 {
        self.change.apply(LIMITS[index].limit)
    }

    /// Gives back what is used, and never what is held.
    pub fn refund(&mut self, key: Key, units: u64, now: u64) {
        let level = self.used(key, now).saturating_sub(units * SECOND);
        self.used.insert(key, (level, now));
    }

    /// Millionths of units that are used.
    pub fn used(&self, key: Key, now: u64) -> u64 {
        let Some(&(level, at)) = self.used.get(&key) else { return 0 };
        match LIMITS[key.0].window {
            0 => level.saturating_sub(now - at),
            window if at / window == now / window => level,
            _ => 0,
        }
    }

    pub fn held(&self, key: Key, now: u64) -> u64 {
        let parts = self.ids.values().filter_map(|known| known.entries.get(&key)?.2);
        parts.filter(|part| part.is_there && part.end > now).map(|part| part.units).sum()
    }

    pub fn fits(&self, key: Key, units: u64, now: u64) -> bool {
        let taken = self.used(key, now) + (self.held(key, now) + units) * SECOND;
        units <= self.limit(key.0) && taken <= self.limit(key.0) * SECOND
    }

    pub fn remaining(&self, key: Key, now: u64) -> u64 {
        let taken = self.used(key, now) + self.held(key, now) * SECOND;
        (self.limit(key.0) * SECOND).saturating_sub(taken) / SECOND
    }

    pub fn charge(&mut self, key: Key, units: u64, now: u64) {
        let level = self.used(key, now) + units * SECOND;
        self.used.insert(key, (level, now));
    }

    /// Charges up to twice the limit; says how much.
    pub fn force(&mut self, key: Key, units: u64, now: u64) -> u64 {
        let most = (2 * self.limit(key.0) * SECOND).saturating_sub(self.used(key, now)) / SECOND;
        self.charge(key, units.min(most), now);
        self.uncharged += units.saturating_sub(most);
        units.min(most)
    }

    pub fn reset(&mut self, key: Key) {
        self.used.remove(&key);
        for known in self.ids.values_mut() {
            if let Some((.., Some(part))) = known.entries.get_mut(&key) {
                part.is_there = false;
            }
        }
    }

    /// Settles an id that is not settled yet.
    pub fn settle(&mut self, id: u64, keys: &[Key], used: [Option<u64>; 2], now: u64) -> Known {
        let known = self.ids.get(&id).filter(|known| now < known.until).cloned();
        let outcome = match &known {
            None => "unknown",
            Some(known) if now >= known.end => "late",
            Some(_) => "settled",
        };
        let mut settled = known.unwrap_or(Known {
            end: now,
            until: 0,
            asked: None,
            settled: None,
            entries: BTreeMap::new(),
            charged: BTreeMap::new(),
        });
        let before = settled.clone();
        settled.settled = Some((used, outcome));
        settled.until = now + KNOWN_FOR;
        // What is held ends before anything is charged; of keys that the settlement does not name, by itself.
        for key in keys {
            if let Some((.., Some(part))) = settled.entries.get_mut(key) {
                part.is_there = false;
            }
        }
        self.ids.insert(id, settled.clone());
        for &key in keys {
            let Some(name) = LIMITS[key.0].cost else { continue };
            let entry = before.entries.get(&key);
            let charged = match entry {
                Some((None, ..)) => None,
                Some((Some(granted), at_once, part)) => {
                    let in_window = part.filter(|part| part.end <= now && part.end < before.end);
                    let kept = at_once + in_window.map_or(0, |part| part.units);
                    Some(used[name].unwrap_or(*granted).saturating_sub(kept))
                }
                None => Some(used[name].unwrap_or(0)),
            };
            let charged = charged.map(|units| self.force(key, units, now));
            settled.charged.insert(key, charged);
        }
        self.ids.insert(id, settled.clone());
        settled
    }
}

impl Definition {
    /// The time until a limit is full, if nothing more is charged.
    pub fn reset_after(&self, key: Key, now: u64) -> u64 {
        let used = match (self.used(key, now), LIMITS[key.0].window) {
            (0, _) => 0,
            (level, 0) => level,
            (_, window) => window - now % window,
        };
        let parts = self.ids.values().filter_map(|known| known.entries.get(&key)?.2);
        let ends =
            parts.filter(|part| part.is_there && part.end > now && part.units > 0).map(|part| part.end - now);
        used.max(ends.max().unwrap_or(0))
    }

    /// Returns the granted units of both costs, and the limits that deny the least of them.
    pub fn judge(&self, keys: &[Key], asked: &[(u64, Option<u64>); 2], now: u64) -> ([u64; 2], Vec<usize>) {
        let units = |limit: &Defined, least: bool| match limit.cost {
            None => (1, true),
            Some(name) if least => (asked[name].1.unwrap_or(asked[name].0), asked[name].0 > 0),
            Some(name) => (asked[name].0, asked[name].0 > 0),
        };
        let denies = |key: &&Key| {
            let (required, is_judged) = units(&LIMITS[key.0], true);
            !LIMITS[key.0].shadow && is_judged && !self.fits(**key, required, now)
        };
        let granted = |name: usize| {
            let takes = |key: &&Key| LIMITS[key.0].cost == Some(name) && !LIMITS[key.0].shadow;
            let fits = keys.iter().filter(takes).map(|key| self.remaining(*key, now)).min();
            asked[name].1.map_or(asked[name].0, |_| asked[name].0.min(fits.unwrap()))
        };
        ([granted(0), granted(1)], keys.iter().filter(denies).map(|key| key.0).collect())
    }
}
