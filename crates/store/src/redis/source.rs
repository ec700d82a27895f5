//! Assembles scripts from the files of `lua/`.
//!
//! Redis runs the whole source at every call, so defining an unused function costs as much as defining a used one. A
//! call therefore uses a script with just the engines that its limits need. If all of them have a short path, the
//! script starts with the short path for exactly their list.

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use super::lua_files::{self, BUDGET, DECIDE, JUDGE, LIMIT, NUMBERS, START, files_of};
use super::plain::{self, Form};
use crate::scripts::{Script, ScriptSpec};
use weir_core::algorithm::{Algorithm, EngineKind};

/// The bit of scripts with idempotent decisions. No engine has it, because their numbers start at 1.
const ONCE: usize = 1;

/// Function around engines and driver. A function that is defined finds each name of its own chunk in the list of all names
/// that are in use, the first ones last; those of a chunk around it, it takes at once. This saves a third of the time of
/// all definitions.
const OPEN: &str = "local function driver()";
const CLOSE: &str = "end\nreturn driver()";

const SETS: usize = 1 << (EngineKind::ALL.len() + 2);

/// The bit of scripts with reservations of logs.
const HELD: usize = 1 << (EngineKind::ALL.len() + 1);

/// Scripts by the bits of their set of engines, those of limits with costs of their own, and by their list on the short
/// path. Assembled on first use.
static SCRIPTS: [OnceLock<Script>; SETS] = [const { OnceLock::new() }; SETS];
static BUDGETS: [OnceLock<Script>; SETS] = [const { OnceLock::new() }; SETS];
static PLAIN: [OnceLock<Script>; plain::SHORT_FORMS] = [const { OnceLock::new() }; plain::SHORT_FORMS];

/// Scripts by lists of more than three engines, and of limits with costs of their own by any list.
static LONG_PLAIN: RwLock<BTreeMap<Form, &'static Script>> = RwLock::new(BTreeMap::new());

/// The most of these that have a script, as Redis keeps each of them. Further ones use the full driver, with the same
/// answers.
const MOST_LONG_PLAIN: usize = 256;

pub(super) fn script_for<'a>(
    form: Form,
    once: bool,
    limits: impl Iterator<Item = &'a Algorithm>,
) -> &'static Script {
    if let Some(script) = plain_script(form) {
        return script;
    }
    let mut engines = if once { ONCE } else { 0 };
    for limit in limits {
        engines |= bit(limit.engine().kind()) | if limit.is_held() { HELD } else { 0 };
    }
    match form {
        Form::Budget | Form::PlainCosts(_) => {
            BUDGETS[engines].get_or_init(|| Script::new(join(engines, "", &BUDGET)))
        }
        Form::Any | Form::Plain(_) => {
            SCRIPTS[engines].get_or_init(|| Script::new(join(engines, "", &[DECIDE])))
        }
    }
}

/// Returns the script with the short path of a form that has one, unless there are too many of them.
fn plain_script(form: Form) -> Option<&'static Script> {
    let (list, has_own_costs) = match form {
        Form::Plain(list) => (list, false),
        Form::PlainCosts(list) => (list, true),
        Form::Any | Form::Budget => return None,
    };
    let new = || Script::new(plain_text(list, has_own_costs));
    if !has_own_costs && let Some(script) = usize::try_from(list).ok().and_then(|list| PLAIN.get(list)) {
        return Some(script.get_or_init(new));
    }
    // Nothing can be left half done under this lock.
    let known = LONG_PLAIN.read().unwrap_or_else(PoisonError::into_inner).get(&form).copied();
    if known.is_some() {
        return known;
    }
    let mut all = LONG_PLAIN.write().unwrap_or_else(PoisonError::into_inner);
    if all.len() >= MOST_LONG_PLAIN && !all.contains_key(&form) {
        return None;
    }
    Some(all.entry(form).or_insert_with(|| Box::leak(Box::new(new()))))
}

fn plain_text(list: u32, has_own_costs: bool) -> String {
    let driver: &[&str] = if has_own_costs { &BUDGET } else { &[DECIDE] };
    join(bits(plain::engines(list)), &plain::text(list, has_own_costs), driver)
}

/// Returns scripts that cover every part of decisions, by name: the full driver with all engines, the short path of every
/// list of one or two engines and of the longest list of each (a third limit repeats the parts of the second), and rights.
pub(super) fn scripts_of_decisions() -> impl Iterator<Item = (String, String)> {
    let all = bits(EngineKind::ALL.into_iter()) | ONCE | HELD;
    let full = ("full".to_owned(), join(all, "", &[DECIDE]));
    let budget = ("budget".to_owned(), join(all, "", &BUDGET));
    let short = plain::lists_to_check().flat_map(|list| {
        let names: Vec<&str> = plain::engines(list).map(EngineKind::name).collect();
        let names = names.join("-");
        [
            (format!("short-{names}"), plain_text(list, false)),
            (format!("costs-{names}"), plain_text(list, true)),
        ]
    });
    let rights = ("rights".to_owned(), lua_files::RIGHTS.to_owned());
    [full, budget, rights].into_iter().chain(short)
}

const fn bit(engine: EngineKind) -> usize {
    1 << engine.number()
}

fn bits(engines: impl Iterator<Item = EngineKind>) -> usize {
    engines.fold(0, |bits, engine| bits | bit(engine))
}

/// Joins the files of a script that ends with a driver.
fn join(engines: usize, plain: &str, driver: &[&str]) -> String {
    // The sparse engine uses functions of the slots engine.
    let needs_slots = engines & bit(EngineKind::Sparse) != 0;
    let engines = if needs_slots { engines | bit(EngineKind::Slots) } else { engines };
    let used = EngineKind::ALL.into_iter().filter(|engine| engines & bit(*engine) != 0);
    let used = used.map(|engine| files_of(engine).driver);
    let has = |bit: usize, file: &'static str| (engines & bit != 0).then_some(file);
    let more = [has(HELD, lua_files::HELD), has(ONCE, lua_files::ONCE)].into_iter().flatten();
    let parts = [START, plain, NUMBERS, OPEN].into_iter().chain(used).chain(more).chain([LIMIT, JUDGE]);
    let parts: Vec<&str> = parts.chain(driver.iter().copied()).chain([CLOSE]).collect();
    parts.join("\n")
}

/// Returns scripts that cover every part of `lua/`, by name, for linters: those of decisions, and those of `features`.
pub fn scripts_to_check(features: &[&'static ScriptSpec]) -> impl Iterator<Item = (String, String)> {
    let named = |spec: &&'static ScriptSpec| {
        let feature = spec.name.replace(' ', "-");
        spec.scripts.iter().map(move |(name, parts)| (format!("{feature}-{name}"), parts.join("\n")))
    };
    scripts_of_decisions().chain(features.iter().flat_map(named).collect::<Vec<_>>())
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
            let script = plain_script(Form::Plain(*list));
            made += usize::from(script.is_some());
            script.is_none()
        });
        assert_eq!(refused.count(), 0, "{made}");
        let another = (0..8).fold(0, |list, _| list << 3 | 6);
        assert!(plain_script(Form::Plain(another)).is_none());
        let limits = [Algorithm::uniform(weir_units::Micros::from_secs(1)).unwrap(); 8];
        let script = script_for(Form::Plain(another), false, limits.iter());
        assert!(!script.source.contains("local ABSENT"), "the full driver decides instead");
    }
}
