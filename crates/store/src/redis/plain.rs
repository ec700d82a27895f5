//! The short way's text, for one list of engines: `lua/plain.lua` with the parts of `lua/plain/` in it.

use super::source::{Form, number_of};
use weir_core::algorithm::{Algorithm, Engine, Grid, Window};

/// The most limits that a list has: every further one multiplies the scripts that there may be.
const MOST: u32 = 3;

/// Bits of each engine in a list; no engine is 0.
const BITS: u32 = 3;

/// Lists that there may be.
pub(super) const FORMS: usize = 1 << (BITS * MOST);

/// Each engine: its number, in a list and in `lua/decide.lua`, and its file.
const ENGINES: [(usize, &str); 6] = [
    (1, include_str!("../../../../lua/plain/bucket.lua")),
    (2, include_str!("../../../../lua/plain/window.lua")),
    (3, include_str!("../../../../lua/plain/interval.lua")),
    (4, include_str!("../../../../lua/plain/log.lua")),
    (5, include_str!("../../../../lua/plain/sliding.lua")),
    (6, include_str!("../../../../lua/plain/slots.lua")),
];

const PLAIN: &str = include_str!("../../../../lua/plain.lua");

/// The parts that are the same for every engine.
const ANY: &str = include_str!("../../../../lua/plain/any.lua");

/// The form of decisions over these limits.
pub(super) fn form_of<'a>(limits: impl Iterator<Item = &'a Algorithm>) -> Form {
    let mut list = 0_u16;
    for (place, limit) in limits.enumerate() {
        if place >= MOST as usize || !is_plain(limit) {
            return Form::Any;
        }
        list |= (number_of(limit.engine()) as u16) << (BITS * place as u32);
    }
    if list == 0 { Form::Any } else { Form::Plain(list) }
}

fn is_plain(limit: &Algorithm) -> bool {
    let by_the_clock = |window: &Window| matches!(window.grid, Grid::Month { .. } | Grid::Spread);
    !limit.counts_denied() && !matches!(limit.engine(), Engine::Window(window) if by_the_clock(window))
}

/// The numbers that `lua/decide.lua` knows the engines of a list by.
pub(super) fn engines(list: u16) -> impl Iterator<Item = usize> {
    parts(list).into_iter().map(|(engine, _)| engine)
}

/// The text for a list.
pub(super) fn text(list: u16) -> String {
    let parts = parts(list);
    let mut out = String::new();
    for line in PLAIN.lines() {
        match part_named(line) {
            Some(name) => {
                for (index, (_, file)) in parts.iter().enumerate() {
                    write_part(&mut out, file, name, index);
                }
            }
            None => out.push_str(&repeated(line, parts.len())),
        }
        out.push('\n');
    }
    out
}

/// Appends the part `name` of a limit, which may name further ones.
fn write_part(out: &mut String, file: &'static str, name: &str, index: usize) {
    for line in section(file, name).or_else(|| section(ANY, name)).unwrap_or("").lines() {
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

fn parts(list: u16) -> Vec<(usize, &'static str)> {
    let numbers = (0..MOST).map(|place| usize::from(list >> (BITS * place) & ((1 << BITS) - 1)));
    numbers.filter_map(|number| ENGINES.into_iter().find(|(of, _)| *of == number)).collect()
}

/// What stands in `file` between `@name` at the start of a line and the next one.
fn section(file: &'static str, name: &str) -> Option<&'static str> {
    let mut sections = file.split("\n@").filter_map(|section| section.split_once('\n'));
    sections.find(|(of, _)| *of == name).map(|(_, text)| text)
}

/// A line with what stands in `<< >>` repeated for each of `limits`.
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
