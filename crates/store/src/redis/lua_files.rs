//! The files of `lua/`. A new engine does not compile until its files are listed here.

use weir_core::algorithm::EngineKind;

#[derive(Debug, Clone, Copy)]
pub(super) struct EngineFiles {
    pub(super) driver: &'static str,
    /// Parts of the short path, if the engine has one.
    pub(super) plain: Option<&'static str>,
}

macro_rules! driver {
    ($name:literal) => {
        EngineFiles { driver: include_str!(concat!("../../../../lua/", $name, ".lua")), plain: None }
    };
}

macro_rules! driver_and_short_path {
    ($name:literal) => {
        EngineFiles {
            plain: Some(include_str!(concat!("../../../../lua/plain/", $name, ".lua"))),
            ..driver!($name)
        }
    };
}

pub(super) const fn files_of(engine: EngineKind) -> EngineFiles {
    match engine {
        EngineKind::Bucket => driver_and_short_path!("bucket"),
        EngineKind::Window => driver_and_short_path!("window"),
        EngineKind::Interval => driver_and_short_path!("interval"),
        EngineKind::Log => driver_and_short_path!("log"),
        EngineKind::Sliding => driver_and_short_path!("sliding"),
        EngineKind::Slots => driver_and_short_path!("slots"),
        EngineKind::WarmUp => driver!("warm_up"),
        EngineKind::Sparse => driver!("sparse"),
    }
}

/// The prologue of every script.
pub(super) const START: &str = include_str!("../../../../lua/start.lua");

/// Arithmetic and decoding of states, for the full driver.
pub(super) const NUMBERS: &str = include_str!("../../../../lua/numbers.lua");

/// Reservations of logs, for the full driver.
pub(super) const HELD: &str = include_str!("../../../../lua/held.lua");

/// Idempotent decisions, for the full driver.
pub(super) const ONCE: &str = include_str!("../../../../lua/once.lua");

/// The operations on a limit, for the full driver.
pub(super) const LIMIT: &str = include_str!("../../../../lua/limit.lua");

/// The judgement of a limit, and how a write is taken back, for both drivers.
pub(super) const JUDGE: &str = include_str!("../../../../lua/judge.lua");

/// The driver of limits with costs of their own, in parts.
pub(super) const BUDGET: [&str; 8] = [
    include_str!("../../../../lua/budget/parts.lua"),
    include_str!("../../../../lua/budget/record.lua"),
    include_str!("../../../../lua/budget/standing.lua"),
    include_str!("../../../../lua/budget/commit.lua"),
    include_str!("../../../../lua/budget/ask.lua"),
    include_str!("../../../../lua/budget/settle.lua"),
    include_str!("../../../../lua/budget/adjust.lua"),
    include_str!("../../../../lua/budget.lua"),
];

pub(super) const DECIDE: &str = include_str!("../../../../lua/decide.lua");

/// The template of the short path.
pub(super) const PLAIN: &str = include_str!("../../../../lua/plain.lua");

/// The parts of the short path that are the same for every engine.
pub(super) const PLAIN_ANY: &str = include_str!("../../../../lua/plain/any.lua");

/// The script that checks for missing rights.
pub(super) const RIGHTS: &str = include_str!("../../../../lua/rights.lua");
