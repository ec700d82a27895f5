//! Access to a backend that runs scripts atomically, slot by slot.

use std::pin::Pin;
use std::sync::Arc;

use weir_core::key::Namespace;
use weir_units::Micros;

use super::{AskScripts, Commands, LinkReply, Script};

/// A backend that runs scripts.
pub type ScriptClient = Arc<dyn OpenLinks>;

/// Opens connections to a backend that runs scripts. A trait, because only the store of Redis names its client.
pub trait OpenLinks: Send + Sync {
    /// Returns a link to the owner of `slot`, where the data of `of` lies.
    fn link(&self, of: &'static str, slot: u16) -> Box<dyn SlotLink>;

    /// Opens the connections of one worker, within the worker's runtime.
    fn connections(&self) -> Arc<dyn AskScripts>;

    /// Creates connections that open on their first use, within the runtime that uses them.
    fn lazy_connections(&self) -> Arc<dyn AskScripts>;
}

/// A connection to the owner of one slot. It is opened on first use, and again after a failure. An error is a text for the
/// log: it is not known what was done.
pub trait SlotLink: Send + 'static {
    /// Sends commands, and returns the reply to each. An error for which `harmless` is true has no reply ([`LinkReply::Nil`]);
    /// any other is the error of all.
    fn send<'a>(
        &'a mut self,
        commands: &'a Commands,
        harmless: fn(&str) -> bool,
    ) -> LinkFuture<'a, Vec<LinkReply>>;

    /// Runs a script. A redirect to another owner is followed.
    fn run<'a>(&'a mut self, run: LinkScript<'a>) -> LinkFuture<'a, LinkReply>;

    /// Returns the prefix of keys.
    fn namespace(&self) -> &Namespace;

    /// Returns the time that scripts are told instead of using the backend's clock, if any.
    fn now(&self) -> Option<Micros>;
}

/// The answer of a link.
pub type LinkFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// A script with its keys, which lie in the slot of the link, and its arguments.
#[derive(Clone, Copy)]
pub struct LinkScript<'a> {
    /// The script.
    pub script: &'static Script,
    /// The keys.
    pub keys: &'a [String],
    /// The arguments.
    pub arguments: &'a [&'a [u8]],
}
