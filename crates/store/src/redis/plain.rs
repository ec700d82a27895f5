//! The source of the short path for one list of engines: the template `lua/plain.lua` with the parts of `lua/plain/`.

use super::lua_files::{PLAIN, PLAIN_ANY, files_of};
use weir_core::algorithm::{Algorithm, Engine, EngineKind, Grid, MAX_LIMITS, Window};

/// The limits that a script can decide. Decisions of one form may share a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Form {
    Any,
    /// Limits that the short path decides: a packed list of their engines' numbers, the first in the lowest bits.
    Plain(u32),
    /// Limits with costs of their own.
    PlainCosts(u32),
    /// Limits with costs of their own, which `lua/budget.lua` decides.
    Budget,
}

impl Form {
    /// The form that the full driver decides.
    pub(super) const fn of_full_driver(self) -> Self {
        match self {
            Self::Any | Self::Plain(_) => Self::Any,
            Self::Budget | Self::PlainCosts(_) => Self::Budget,
        }
    }
}

/// Maximum length of a list: the limits of a strategy. So many engines of any kind need fewer names than Lua has.
const MOST: u32 = MAX_LIMITS as u32;

/// Bits of each engine in a list; no engine has the number 0.
const BITS: u32 = 3;

// Engines without a short path are in no list, so their numbers may have more bits.
const _: () = {
    let mut place = 0;
    while place < EngineKind::ALL.len() {
        let engine = EngineKind::ALL[place];
        assert!(files_of(engine).plain.is_none() || engine.number() < 1 << BITS);
        place += 1;
    }
};

/// Number of lists of up to three engines, the smallest ones.
pub(super) const SHORT_FORMS: usize = 1 << (3 * BITS);

/// The lines of the template that only one of its texts has end with these.
const OF_ONE_COST: &str = " --@one";
const OF_OWN_COSTS: &str = " --@own";

pub(super) fn form_of<'a>(limits: impl Iterator<Item = &'a Algorithm>) -> Form {
    list_of(limits).map_or(Form::Any, Form::Plain)
}

/// Returns the form of decisions over these limits, each with a cost of its own that is above 0.
pub(super) fn form_of_costs<'a>(limits: impl Iterator<Item = &'a Algorithm>) -> Form {
    list_of(limits).map_or(Form::Budget, Form::PlainCosts)
}

fn list_of<'a>(limits: impl Iterator<Item = &'a Algorithm>) -> Option<u32> {
    let mut list = 0_u32;
    for (place, limit) in limits.enumerate() {
        if place >= MOST as usize || !is_plain(limit) {
            return None;
        }
        list |= (limit.engine().kind().number() as u32) << (BITS * place as u32);
    }
    (list > 0).then_some(list)
}

fn is_plain(limit: &Algorithm) -> bool {
    let by_the_clock = |window: &Window| matches!(window.grid, Grid::Month { .. } | Grid::Spread);
    let has_short_path = files_of(limit.engine().kind()).plain.is_some();
    has_short_path
        && !limit.counts_denied()
        && !limit.is_shadow()
        && !limit.charges_after()
        && limit.undelayed().is_none()
        && !limit.is_held()
        && !matches!(limit.engine(), Engine::Window(window) if by_the_clock(window))
}

/// Iterates over the engines of a list, in order.
pub(super) fn engines(list: u32) -> impl Iterator<Item = EngineKind> {
    let numbers = (0..MOST).map(move |place| (list >> (BITS * place) & ((1 << BITS) - 1)) as usize);
    numbers.filter_map(EngineKind::of_number)
}

/// Iterates over all lists of one or two engines, and those of as many limits as a strategy has of one engine.
pub(super) fn lists_to_check() -> impl Iterator<Item = u32> {
    let number = |engine: EngineKind| engine.number() as u32;
    let engines = || EngineKind::ALL.into_iter().filter(|engine| files_of(*engine).plain.is_some());
    engines().flat_map(move |first| {
        let second = engines().map(move |second| number(first) | number(second) << BITS);
        let all = (0..MOST).fold(0, |list, _| list << BITS | number(first));
        [number(first), all].into_iter().chain(second)
    })
}

/// Returns the script source for a list, of limits with one cost or with costs of their own.
pub(super) fn text(list: u32, has_own_costs: bool) -> String {
    let files: Vec<&'static str> = engines(list).filter_map(|engine| files_of(engine).plain).collect();
    let (own, other) = if has_own_costs { (OF_OWN_COSTS, OF_ONE_COST) } else { (OF_ONE_COST, OF_OWN_COSTS) };
    let mut out = String::new();
    for line in PLAIN.lines().filter(|line| !line.ends_with(other)) {
        let line = line.strip_suffix(own).unwrap_or(line);
        match part_named(line) {
            Some(name) => {
                for (index, file) in files.iter().enumerate() {
                    write_part(&mut out, file, name, index);
                }
            }
            None => out.push_str(&repeated(line, files.len())),
        }
        out.push('\n');
    }
    out
}

/// Appends the part `name` for a limit. Parts may include further parts.
fn write_part(out: &mut String, file: &'static str, name: &str, index: usize) {
    for line in section(file, name).or_else(|| section(PLAIN_ANY, name)).unwrap_or("").lines() {
        match part_named(line) {
            Some(name) => write_part(out, file, name, index),
            None => out.push_str(&of_limit(line, index)),
        }
        out.push('\n');
    }
}

fn part_named(line: &str) -> Option<&str> {
    line.trim().strip_prefix('@')
}

/// Returns the section `name` of `file`: the text from `@name` at the start of a line up to the next such mark.
fn section(file: &'static str, name: &str) -> Option<&'static str> {
    let mut sections = file.split("\n@").filter_map(|section| section.split_once('\n'));
    sections.find(|(of, _)| *of == name).map(|(_, text)| text)
}

/// Expands a line: the text in `<< >>` is repeated for each of `limits`.
fn repeated(line: &str, limits: usize) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, (inner, after))) =
        rest.split_once("<<").and_then(|(before, rest)| Some((before, rest.split_once(">>")?)))
    {
        out.push_str(before);
        out.extend((0..limits).map(|index| of_limit(inner, index)));
        rest = after;
    }
    out + rest
}

fn of_limit(text: &str, index: usize) -> String {
    text.replace('$', &(index + 1).to_string())
}
