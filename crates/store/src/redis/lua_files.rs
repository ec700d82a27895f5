//! The files of `lua/`. The compiler asks for the files of a new engine here.

use weir_core::algorithm::EngineKind;

/// The files of one engine.
#[derive(Debug, Clone, Copy)]
pub(super) struct EngineFiles {
    /// Its part of the full driver.
    pub(super) driver: &'static str,
    /// Its parts of the short path, if it has one.
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

/// The files of an engine.
pub(super) const fn files_of(engine: EngineKind) -> EngineFiles {
    match engine {
        EngineKind::Bucket => driver_and_short_path!("bucket"),
        EngineKind::Window => driver_and_short_path!("window"),
        EngineKind::Interval => driver_and_short_path!("interval"),
        EngineKind::Log => driver_and_short_path!("log"),
        EngineKind::Sliding => driver_and_short_path!("sliding"),
        EngineKind::Slots => driver_and_short_path!("slots"),
        EngineKind::WarmUp => driver!("warm_up"),
    }
}

/// What every script begins with.
pub(super) const START: &str = include_str!("../../../../lua/start.lua");

/// Arithmetic and the reading of states, for the full driver.
pub(super) const NUMBERS: &str = include_str!("../../../../lua/numbers.lua");

/// Reservations of logs, for the full driver.
pub(super) const HELD: &str = include_str!("../../../../lua/held.lua");

/// Decisions under an id, for the full driver.
pub(super) const ONCE: &str = include_str!("../../../../lua/once.lua");

/// The full driver.
pub(super) const DECIDE: &str = include_str!("../../../../lua/decide.lua");

/// The frame of the short path.
pub(super) const PLAIN: &str = include_str!("../../../../lua/plain.lua");

/// The parts of the short path that are the same for every engine.
pub(super) const PLAIN_ANY: &str = include_str!("../../../../lua/plain/any.lua");
