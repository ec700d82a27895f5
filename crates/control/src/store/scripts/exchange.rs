//! Commands and scripts of live control, sent to the owner of their slot.

use weir_core::key::control_slot;
use weir_store::scripts::{Commands, LinkReply, LinkScript, ScriptClient, SlotLink};
use weir_units::Micros;

use super::numbers::ControlNumbers;
use super::texts::{ControlScript, control_script};

/// The connection, and the keys.
pub(super) struct ControlExchange {
    link: Box<dyn SlotLink>,
    /// Records, changes and ends, as `lua/control/start.lua` has them.
    records: [String; 3],
    /// Bans and their changes, as `lua/control/bans_position.lua` has them.
    bans: [String; 2],
}

/// Subject of a script.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeysOf {
    Records,
    Bans,
}

impl ControlExchange {
    pub(super) fn new(scripts: &ScriptClient) -> Self {
        let link = scripts.link("live control", control_slot());
        let key = |name| link.namespace().control_key(name);
        let (records, bans) = (["records", "changes", "ends"].map(key), ["bans", "ban_changes"].map(key));
        Self { link, records, bans }
    }

    /// The first key of these.
    pub(super) fn key(&self, of: KeysOf) -> String {
        match of {
            KeysOf::Records => self.records[0].clone(),
            KeysOf::Bans => self.bans[0].clone(),
        }
    }

    /// The time that scripts are told instead of using the server's clock, if any.
    pub(super) fn now(&self) -> Option<Micros> {
        self.link.now()
    }

    /// Runs a script.
    pub(super) async fn run(
        &mut self,
        keys: KeysOf,
        script: ControlScript,
        numbers: ControlNumbers,
        arguments: &[&[u8]],
    ) -> Result<LinkReply, String> {
        let mut packed = Vec::with_capacity(size_of::<ControlNumbers>());
        numbers.with_time(self.now()).put(&mut packed);
        let arguments: Vec<&[u8]> = std::iter::once(&packed[..]).chain(arguments.iter().copied()).collect();
        let keys = match keys {
            KeysOf::Records => &self.records[..],
            KeysOf::Bans => &self.bans,
        };
        self.link.run(LinkScript { script: control_script(script), keys, arguments: &arguments }).await
    }

    /// Sends commands, and returns their replies. An error of one command is the error of all.
    pub(super) async fn send(&mut self, commands: &Commands) -> Result<Vec<LinkReply>, String> {
        self.link.send(commands, |_| false).await
    }
}
