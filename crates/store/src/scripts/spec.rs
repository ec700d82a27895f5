//! Needs that a set of scripts has of Redis. Each feature has such a record beside its scripts, registered by name; the
//! health of the nodes knows no other list.

use std::any::Any;
use std::fmt;

/// A right in the syntax of `ACL SETUSER` without the `+`, and a command that needs it; `@` is the probe's key. The command
/// has no effect, or none but on this key.
pub type Right = (&'static str, &'static str);

/// A script: its name, and the parts of its text.
pub type ScriptText = (&'static str, &'static [&'static str]);

/// A set of scripts: what it gives, and what it needs. Records of one name are one capability.
pub struct ScriptSpec {
    /// The name of the capability.
    pub name: &'static str,
    /// The capability after "cannot", as in "cannot serve queues".
    pub does: &'static str,
    /// The scripts. A capability without scripts sends its commands itself.
    pub scripts: &'static [ScriptText],
    /// Rights beside those of all capabilities (`COMMON`).
    pub rights: &'static [Right],
    /// The slot that has all its keys, if it is one. Such data is shared by nodes, and callers do not ask for it.
    pub slot: Option<fn() -> u16>,
    /// Exercises the scripts: a [`LaneProbe`](super::LaneProbe), or a type of the backend.
    pub probe: Option<&'static (dyn Any + Send + Sync)>,
}

/// Rights of all capabilities. The first one deletes what the others write.
pub(crate) const COMMON: &[Right] = &[("del", "DEL @"), ("time", "TIME"), ("pexpireat", "PEXPIREAT @ 1")];

impl ScriptSpec {
    /// The name of the capability.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the rights beside those of decisions, in the syntax of `ACL SETUSER`.
    pub fn rights(&self) -> String {
        self.rights.iter().map(|(name, _)| format!("+{name}")).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Debug for ScriptSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for ScriptSpec {
    /// Compares addresses: records of one name may differ.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
