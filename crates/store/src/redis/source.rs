//! Assembles scripts from the files of `lua/`.
//!
//! Redis runs the whole source at every call, so defining an unused function costs as much as defining a used one. A
//! call therefore uses a script with just the engines that its limits need. If all of them have a short path, the
//! script starts with the short path for exactly their list.

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use super::lua_files::{self, APPROXIMATE, CONTROL, DECIDE, LEASES, LIMIT, NUMBERS, QUEUES, START, files_of};
use super::plain::{self, Form};
use weir_core::algorithm::{Algorithm, EngineKind};
use weir_core::lease::{ConcurrencyRule, ControllerRule};

/// A script: its source, and its SHA-1 digest for EVALSHA.
pub(super) struct Script {
    pub(super) source: String,
    pub(super) sha: String,
}

/// Compares addresses: there is one instance per source.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// The bit of scripts with idempotent decisions. No engine has it, because their numbers start at 1.
const ONCE: usize = 1;

/// Number of possible sets of bits.
const SETS: usize = 1 << (EngineKind::ALL.len() + 2);

/// The bit of scripts with reservations of logs.
const HELD: usize = 1 << (EngineKind::ALL.len() + 1);

/// Scripts by the bits of their set of engines, and by their list on the short path. Assembled on first use.
static SCRIPTS: [OnceLock<Script>; SETS] = [const { OnceLock::new() }; SETS];
static PLAIN: [OnceLock<Script>; plain::SHORT_FORMS] = [const { OnceLock::new() }; plain::SHORT_FORMS];

/// Scripts by lists of more than three engines.
static LONG_PLAIN: RwLock<BTreeMap<u32, &'static Script>> = RwLock::new(BTreeMap::new());

/// The most lists of more than three engines that have a script, as Redis keeps each of them. Further ones use the full
/// driver, with the same answers.
const MOST_LONG_PLAIN: usize = 256;

/// The scripts of leases, in the order of [`LEASES`].
static LEASE_SCRIPTS: [OnceLock<Script>; LEASES.len()] = [const { OnceLock::new() }; LEASES.len()];

/// The scripts of queues, in the order of [`QUEUES`].
static QUEUE_SCRIPTS: [OnceLock<Script>; QUEUES.len()] = [const { OnceLock::new() }; QUEUES.len()];

/// The scripts of live control, in the order of [`CONTROL`].
static CONTROL_SCRIPTS: [OnceLock<Script>; CONTROL.len()] = [const { OnceLock::new() }; CONTROL.len()];

/// A script of live control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlScript {
    /// Changes an entry.
    Put,
    /// Takes over newer records of a node.
    Merge,
    /// Reads what is new.
    Poll,
    /// Adds bans.
    AddBans,
    /// Lifts a ban.
    LiftBan,
    /// Reads what is new of bans.
    PollBans,
}

/// Returns a script of live control.
pub(super) fn control_script(does: ControlScript) -> &'static Script {
    let number = match does {
        ControlScript::Put => 0,
        ControlScript::Merge => 1,
        ControlScript::Poll => 2,
        ControlScript::AddBans => 3,
        ControlScript::LiftBan => 4,
        ControlScript::PollBans => 5,
    };
    CONTROL_SCRIPTS[number].get_or_init(|| Script::of(CONTROL[number].1.join("\n")))
}

/// The scripts of counters that nodes count on their own, in the order of [`APPROXIMATE`].
static COUNT_SCRIPTS: [OnceLock<Script>; APPROXIMATE.len()] = [const { OnceLock::new() }; APPROXIMATE.len()];

/// A script of counters that nodes count on their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountScript {
    /// Counts and decides.
    Count,
    /// Gives places to nodes.
    Places,
}

/// Returns a script of such counters.
pub(super) fn count_script(does: CountScript) -> &'static Script {
    let counts =
        |number: usize| COUNT_SCRIPTS[number].get_or_init(|| Script::of(APPROXIMATE[number].1.to_owned()));
    match does {
        CountScript::Count => counts(0),
        CountScript::Places => counts(1),
    }
}

/// The kind of script for a queue operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueScript {
    /// Enqueues items.
    Enqueue,
    /// Delivers items.
    Take,
    /// Acks or nacks items.
    Settle,
    /// Reads statistics.
    Stats,
    /// Shows items.
    Browse,
    /// Removes all items.
    Purge,
    /// Moves dead letters back.
    Redrive,
    /// Looks for outcomes.
    Outcomes,
}

/// Returns the script of a queue operation. Items of a list are not settled, and have no dead letters. If it `makes_room`, items age out, or are
/// dropped for new ones.
pub(super) fn queue_script(does: QueueScript, is_list: bool, makes_room: bool) -> &'static Script {
    let number = match (does, is_list) {
        (QueueScript::Enqueue, false) if makes_room => 12,
        (QueueScript::Take, false) if makes_room => 13,
        (QueueScript::Enqueue, true) if makes_room => 14,
        (QueueScript::Take, true) if makes_room => 15,
        (QueueScript::Enqueue, false) => 0,
        (QueueScript::Take, false) => 1,
        (QueueScript::Settle, _) => 2,
        (QueueScript::Stats, false) => 3,
        (QueueScript::Enqueue, true) => 4,
        (QueueScript::Take, true) => 5,
        (QueueScript::Stats, true) => 6,
        (QueueScript::Browse, false) => 7,
        (QueueScript::Browse, true) => 8,
        (QueueScript::Purge, false) => 9,
        (QueueScript::Purge, true) => 10,
        (QueueScript::Redrive, _) => 11,
        (QueueScript::Outcomes, false) => 16,
        (QueueScript::Outcomes, true) => 17,
    };
    QUEUE_SCRIPTS[number].get_or_init(|| Script::of(QUEUES[number].1.join("\n")))
}

/// Returns the lease script for the source of this rule's limit.
pub(super) fn lease_script(rule: &ConcurrencyRule) -> &'static Script {
    let kind = match rule.adaptive().map(|adaptive| &adaptive.controller) {
        None => 0,
        Some(ControllerRule::Aimd(_)) => 1,
        Some(ControllerRule::Vegas(_)) => 2,
        Some(ControllerRule::Gradient2(_)) => 3,
    };
    LEASE_SCRIPTS[kind].get_or_init(|| Script::of(LEASES[kind].1.join("\n")))
}

/// Returns the script that lists leases.
pub(super) fn lease_list_script() -> &'static Script {
    static SCRIPT: OnceLock<Script> = OnceLock::new();
    SCRIPT.get_or_init(|| Script::of(lua_files::LEASE_LIST.to_owned()))
}

/// Returns the script of `form` for all of `limits`.
pub(super) fn script_for<'a>(
    form: Form,
    once: bool,
    limits: impl Iterator<Item = &'a Algorithm>,
) -> &'static Script {
    if let Form::Plain(list) = form
        && let Some(script) = plain_script(list)
    {
        return script;
    }
    let mut engines = if once { ONCE } else { 0 };
    for limit in limits {
        engines |= bit(limit.engine().kind()) | if limit.is_held() { HELD } else { 0 };
    }
    SCRIPTS[engines].get_or_init(|| Script::of(join(engines, "")))
}

/// Returns the script with the short path of a list, unless there are too many of them.
fn plain_script(list: u32) -> Option<&'static Script> {
    let new = || Script::of(join(bits(plain::engines(list)), &plain::text(list)));
    if let Some(script) = usize::try_from(list).ok().and_then(|list| PLAIN.get(list)) {
        return Some(script.get_or_init(new));
    }
    // Nothing can be left half done under this lock.
    let known = LONG_PLAIN.read().unwrap_or_else(PoisonError::into_inner).get(&list).copied();
    if known.is_some() {
        return known;
    }
    let mut all = LONG_PLAIN.write().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= MOST_LONG_PLAIN && !all.contains_key(&list) {
        return None;
    }
    Some(all.entry(list).or_insert_with(|| Box::leak(Box::new(new()))))
}

/// Returns scripts that cover every part of `lua/`, by name, for linters: the full driver with all engines, the short
/// path of every list of one or two engines and of the longest list of each (a third limit repeats the parts of the second), leases, queues, live control,
/// counters of nodes, and rights.
pub fn scripts_to_check() -> impl Iterator<Item = (String, String)> {
    let full = ("full".to_owned(), join(bits(EngineKind::ALL.into_iter()) | ONCE | HELD, ""));
    let short = plain::lists_to_check().map(|list| {
        let names: Vec<&str> = plain::engines(list).map(EngineKind::name).collect();
        (format!("short-{}", names.join("-")), join(bits(plain::engines(list)), &plain::text(list)))
    });
    let leases = LEASES.iter().map(|(name, files)| (format!("lease-{name}"), files.join("\n")));
    let queues = QUEUES.iter().map(|(name, files)| (format!("queue-{name}"), files.join("\n")));
    let control = CONTROL.iter().map(|(name, files)| (format!("control-{name}"), files.join("\n")));
    let rights = ("rights".to_owned(), lua_files::RIGHTS.to_owned());
    let list = ("lease-list".to_owned(), lua_files::LEASE_LIST.to_owned());
    let counts = APPROXIMATE.iter().map(|(name, file)| (format!("approximate-{name}"), (*file).to_owned()));
    [full, rights, list].into_iter().chain(short).chain(leases).chain(queues).chain(control).chain(counts)
}

const fn bit(engine: EngineKind) -> usize {
    1 << engine.number()
}

fn bits(engines: impl Iterator<Item = EngineKind>) -> usize {
    engines.fold(0, |bits, engine| bits | bit(engine))
}

fn join(engines: usize, plain: &str) -> String {
    // The sparse engine uses functions of the slots engine.
    let needs_slots = engines & bit(EngineKind::Sparse) != 0;
    let engines = if needs_slots { engines | bit(EngineKind::Slots) } else { engines };
    let used = EngineKind::ALL.into_iter().filter(|engine| engines & bit(*engine) != 0);
    let used = used.map(|engine| files_of(engine).driver);
    let has = |bit: usize, file: &'static str| (engines & bit != 0).then_some(file);
    let more = [has(HELD, lua_files::HELD), has(ONCE, lua_files::ONCE)].into_iter().flatten();
    let parts = [START, plain, NUMBERS].into_iter().chain(used).chain(more).chain([LIMIT, DECIDE]);
    let parts: Vec<&str> = parts.collect();
    parts.join("\n")
}

impl Script {
    fn of(source: String) -> Self {
        let sha = sha1_smol::Sha1::from(&source).digest().to_string();
        Self { source, sha }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redis keeps every script: lists that reloads and requests come up with may not fill it.
    #[test]
    fn lists_of_many_engines_have_scripts_up_to_a_bound() {
        let lists = (0..).map(|number: u32| {
            // Four buckets, and four engines out of two kinds each.
            (0..8).fold(0, |list, place| {
                list << 3 | if place < 4 { 1 } else { 1 + (number >> (2 * (place - 4)) & 3) }
            })
        });
        let mut made = 0;
        let refused = lists.take(256).filter(|list| {
            let script = plain_script(*list);
            made += usize::from(script.is_some());
            script.is_none()
        });
        assert_eq!(refused.count(), 0, "{made}");
        let another = (0..8).fold(0, |list, _| list << 3 | 6);
        assert!(plain_script(another).is_none());
        let limits = [Algorithm::uniform(weir_units::Micros::from_secs(1)).unwrap(); 8];
        let script = script_for(Form::Plain(another), false, limits.iter());
        assert!(!script.source.contains("local ABSENT"), "the full driver decides instead");
    }
}
