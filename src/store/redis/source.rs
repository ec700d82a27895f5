//! The script's text: the files of `lua/`, joined.
//!
//! Redis runs the whole text at every call, so each function that is defined and not used costs as much
//! as one that is. A call therefore names a script of just the engines that its limits need.

use std::sync::{Arc, OnceLock};

use super::request::Request;
use crate::algorithm::Engine;

/// A script, and the name that Redis knows it by.
pub(super) struct Script {
    pub(super) source: String,
    pub(super) sha: String,
}

/// One engine's number in `lua/decide.lua`, and its file.
const ENGINES: [(usize, &str); 6] = [
    (1, include_str!("../../../lua/bucket.lua")),
    (2, include_str!("../../../lua/window.lua")),
    (3, include_str!("../../../lua/interval.lua")),
    (4, include_str!("../../../lua/log.lua")),
    (5, include_str!("../../../lua/sliding.lua")),
    (6, include_str!("../../../lua/slots.lua")),
];

const NUMBERS: &str = include_str!("../../../lua/numbers.lua");
const DECIDE: &str = include_str!("../../../lua/decide.lua");

/// Every set of engines, by its bits; joined when it is first needed.
static SCRIPTS: [OnceLock<Script>; 1 << (ENGINES.len() + 1)] =
    [const { OnceLock::new() }; 1 << (ENGINES.len() + 1)];

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

/// The script for all limits of `requests`.
pub(super) fn script_for(requests: &[Arc<Request>]) -> &'static Script {
    let limits = requests.iter().flat_map(|request| request.strategy.algorithms());
    let engines = limits.fold(0, |bits, limit| bits | 1 << number_of(limit.engine()));
    SCRIPTS[engines].get_or_init(|| join(engines))
}

fn join(engines: usize) -> Script {
    let used = ENGINES.iter().filter(|(number, _)| engines & 1 << number != 0).map(|(_, text)| *text);
    let parts: Vec<&str> = std::iter::once(NUMBERS).chain(used).chain([DECIDE]).collect();
    let source = parts.join("\n");
    let sha = sha1_smol::Sha1::from(&source).digest().to_string();
    Script { source, sha }
}
