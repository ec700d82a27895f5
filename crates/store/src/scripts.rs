//! Scripts and commands on the keys of one slot, in types of no backend: what features keep in a backend that has them.
//!
//! A feature says with a [`ScriptSpec`] what its scripts need, and keeps its data over a [`SlotLink`] of the
//! [`ScriptClient`] that the backend gives.

mod client;
mod commands;
mod lane;
mod named_doubles;
mod packed;
mod reply;
mod spec;
mod status_codes;
mod uses;

pub use self::client::{LinkFuture, LinkScript, OpenLinks, ScriptClient, SlotLink};
pub use self::commands::{Commands, LinkCommand};
pub use self::lane::{
    AnyAnswer, AnyLaneRequest, AskFuture, AskScripts, LANE_DEADLINE, LaneProbe, LaneReplies, LaneRequest, ask,
};
pub(crate) use self::named_doubles::doubles;
pub use self::named_doubles::put_double;
pub use self::packed::{ReplyDoubles, doubles_of, garbled, next_whole, whole};
pub use self::reply::LinkReply;
pub(crate) use self::spec::COMMON;
pub use self::spec::{Right, ScriptSpec, ScriptText};
pub(crate) use self::status_codes::codes;
pub use self::uses::{Uses, UsesInForce};

/// A script: its source, and its SHA-1 digest for EVALSHA.
pub struct Script {
    pub(crate) source: String,
    pub(crate) sha: String,
}

/// Compares addresses: there is one instance per source.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Script {
    /// Creates a script of this text.
    pub fn new(source: String) -> Self {
        let sha = sha1_smol::Sha1::from(&source).digest().to_string();
        Self { source, sha }
    }
}
