//! What a set of scripts needs of Redis. Each feature has such a record beside its scripts and registers it by name; the
//! health of the nodes knows no other list.

use std::fmt;
use std::pin::Pin;

use super::connect::Connection;
use super::context::LinkContext;
use super::probed::Probed;
use super::source::scripts_of_decisions;

/// A right in the syntax of `ACL SETUSER` without the `+`, and a command that needs it; `@` is the probe's key. The command
/// has no effect, or none but on this key.
pub(super) type Right = (&'static str, &'static str);

/// A script: its name, and the parts of its text.
pub(super) type ScriptText = (&'static str, &'static [&'static str]);

/// A set of scripts: what it gives, and what it needs. Records of one name are one capability.
pub struct ScriptSpec {
    /// The name of the capability.
    pub(super) name: &'static str,
    /// The capability after "cannot", as in "cannot serve queues".
    pub(super) does: &'static str,
    /// The scripts. A capability without scripts sends its commands itself.
    pub(super) scripts: &'static [ScriptText],
    /// Rights beside those of all capabilities ([`COMMON`]).
    pub(super) rights: &'static [Right],
    /// The slot that has all its keys, if it is one. Such data is shared by nodes, and callers do not ask for it.
    pub(super) slot: Option<fn() -> u16>,
    /// Exercises the scripts.
    pub(super) probe: Option<&'static dyn ScriptProbe>,
}

/// Exercises scripts on keys of the probe, which have these tags and end by themselves.
pub(super) trait ScriptProbe: Send + Sync {
    fn run<'a>(
        &'a self,
        connection: &'a mut Connection,
        context: &'a LinkContext,
        tags: &'a [u128],
    ) -> Pin<Box<dyn Future<Output = Probed> + Send + 'a>>;
}

/// Returns scripts that cover every part of `lua/`, by name, for linters: those of decisions, and those of `features`.
pub fn scripts_to_check(features: &[&'static ScriptSpec]) -> impl Iterator<Item = (String, String)> {
    let named = |spec: &&'static ScriptSpec| {
        let feature = spec.name.replace(' ', "-");
        spec.scripts.iter().map(move |(name, parts)| (format!("{feature}-{name}"), parts.join("\n")))
    };
    scripts_of_decisions().chain(features.iter().flat_map(named).collect::<Vec<_>>())
}

/// Rights of all capabilities. The first one deletes what the others write.
pub(super) const COMMON: &[Right] = &[("del", "DEL @"), ("time", "TIME"), ("pexpireat", "PEXPIREAT @ 1")];

impl ScriptSpec {
    /// The name of the capability.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its rights beside those of decisions, in the syntax of `ACL SETUSER`.
    #[must_use]
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
