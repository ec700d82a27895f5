//! The files of `lua/`. The compiler asks for the files of a new engine here.

use weir_core::algorithm::EngineKind;

/// The files of one engine.
#[derive(Debug, Clone, Copy)]
pub(super) struct EngineFiles {
    /// Its part of the full driver.
    pub(super) driver: &'static str,
    /// Its parts of the short path.
    pub(super) plain: &'static str,
}

macro_rules! files {
    ($name:literal) => {
        EngineFiles {
            driver: include_str!(concat!("../../../../lua/", $name, ".lua")),
            plain: include_str!(concat!("../../../../lua/plain/", $name, ".lua")),
        }
    };
}

/// The files of an engine.
pub(super) const fn files_of(engine: EngineKind) -> EngineFiles {
    match engine {
        EngineKind::Bucket => files!("bucket"),
        EngineKind::Window => files!("window"),
        EngineKind::Interval => files!("interval"),
        EngineKind::Log => files!("log"),
        EngineKind::Sliding => files!("sliding"),
        EngineKind::Slots => files!("slots"),
    }
}

/// What every script begins with.
pub(super) const START: &str = include_str!("../../../../lua/start.lua");

/// Arithmetic and the reading of states, for the full driver.
pub(super) const NUMBERS: &str = include_str!("../../../../lua/numbers.lua");

/// The full driver.
pub(super) const DECIDE: &str = include_str!("../../../../lua/decide.lua");

/// The frame of the short path.
pub(super) const PLAIN: &str = include_str!("../../../../lua/plain.lua");

/// The parts of the short path that are the same for every engine.
pub(super) const PLAIN_ANY: &str = include_str!("../../../../lua/plain/any.lua");
