//! The script's text: the files of `lua/`, joined.
//!
//! Redis runs the whole text at every call, so each function that is defined and not used costs as much
//! as one that is. A call therefore names a script of just the engines that its limits need, and where
//! they are all of the plain kind, one that begins with the short way for their very list.

use std::sync::OnceLock;

use super::plain;
use weir_core::algorithm::{Algorithm, Engine};

/// A script, and the name that Redis knows it by.
pub(super) struct Script {
    pub(super) source: String,
    pub(super) sha: String,
}

/// What a script is made for. Decisions of one form may share a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Form {
    /// Any limits.
    Any,
    /// Limits that the short way decides: their engines' numbers, the first in the lowest bits.
    Plain(u16),
}

/// One engine's number in `lua/decide.lua`, and its file.
const ENGINES: [(usize, &str); 6] = [
    (1, include_str!("../../../../lua/bucket.lua")),
    (2, include_str!("../../../../lua/window.lua")),
    (3, include_str!("../../../../lua/interval.lua")),
    (4, include_str!("../../../../lua/log.lua")),
    (5, include_str!("../../../../lua/sliding.lua")),
    (6, include_str!("../../../../lua/slots.lua")),
];

const START: &str = include_str!("../../../../lua/start.lua");
const NUMBERS: &str = include_str!("../../../../lua/numbers.lua");
const DECIDE: &str = include_str!("../../../../lua/decide.lua");

/// Every set of engines, by its bits, and every plain form; joined when it is first needed.
static SCRIPTS: [OnceLock<Script>; 1 << (ENGINES.len() + 1)] =
    [const { OnceLock::new() }; 1 << (ENGINES.len() + 1)];
static PLAIN: [OnceLock<Script>; plain::FORMS] = [const { OnceLock::new() }; plain::FORMS];

/// The number that the script knows an engine by.
pub(super) const fn number_of(engine: &Engine) -> usize {
    match engine {
        Engine::Bucket(_) => 1,
        Engine::Window(_) => 2,
        Engine::Interval(_) => 3,
        Engine::Log(_) => 4,
        Engine::Sliding(_) => 5,
        Engine::Slots(_) => 6,
    }
}

/// The script of `form` for all of `limits`.
pub(super) fn script_for<'a>(form: Form, limits: impl Iterator<Item = &'a Algorithm>) -> &'static Script {
    if let Form::Plain(list) = form
        && let Some(script) = PLAIN.get(usize::from(list))
    {
        return script.get_or_init(|| {
            let engines = plain::engines(list).fold(0, |bits, engine| bits | 1 << engine);
            Script::of(join(engines, &plain::text(list)))
        });
    }
    let engines = limits.fold(0, |bits, limit| bits | 1 << number_of(limit.engine()));
    SCRIPTS[engines].get_or_init(|| Script::of(join(engines, "")))
}

fn join(engines: usize, plain: &str) -> String {
    let used = ENGINES.iter().filter(|(number, _)| engines & 1 << number != 0).map(|(_, text)| *text);
    let parts: Vec<&str> = [START, plain, NUMBERS].into_iter().chain(used).chain([DECIDE]).collect();
    parts.join("\n")
}

impl Script {
    fn of(source: String) -> Self {
        let sha = sha1_smol::Sha1::from(&source).digest().to_string();
        Self { source, sha }
    }
}
