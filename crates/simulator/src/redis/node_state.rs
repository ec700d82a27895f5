//! State of a server beside its data: its role, its slots, its names.

use super::commands::{self, CommandEntry};
use super::error_text::SimulatedError;
use super::keyspace::Keyspace;
use super::numbers::{c_text, integer};
use super::reply::{CommandResult, SimulatedReply};
use super::slots::{SimulatedSlots, SlotPlace, slot_of};
use weir_units::Micros;

/// State that commands of a server work on.
#[derive(Debug, Default)]
pub(super) struct NodeState {
    pub(super) keys: Keyspace,
    /// Slots of a cluster; `None` for a standalone server.
    pub(super) slots: Option<SimulatedSlots>,
    pub(super) is_replica: bool,
    /// True if the current command came after ASKING.
    pub(super) is_asking: bool,
    /// Histories of the data: the own one, and the one before a failover.
    pub(super) histories: [String; 2],
}

/// Commands that exist, but not for scripts.
const NOT_IN_SCRIPTS: [&str; 10] =
    ["AUTH", "EVAL", "EVALSHA", "EXEC", "HELLO", "MONITOR", "MULTI", "PSUBSCRIBE", "SUBSCRIBE", "WATCH"];

impl NodeState {
    /// Runs a command of a client.
    pub(super) fn run(&mut self, args: &[Vec<u8>]) -> CommandResult {
        let Some(entry) = commands::find(&args[0]) else { return Err(unknown(args)) };
        if !entry.has_arity(args.len()) {
            return Err(SimulatedError::arity(entry.name));
        }
        self.check_place(entry.keys(args))?;
        self.check_write(entry)?;
        entry.call(&mut self.keys, args)
    }

    /// Runs a command of a script.
    pub(super) fn run_in_script(&mut self, args: &[Vec<u8>]) -> CommandResult {
        if args[0].eq_ignore_ascii_case(b"TIME") && args.len() == 1 {
            return Ok(time_reply(self.keys.now));
        }
        if args[0].eq_ignore_ascii_case(b"CLUSTER") {
            return self.count_keys_in_slot(args);
        }
        let Some(entry) = commands::find(&args[0]) else {
            if NOT_IN_SCRIPTS.iter().any(|name| args[0].eq_ignore_ascii_case(name.as_bytes())) {
                return Err(SimulatedError::new("ERR This Redis command is not allowed from script"));
            }
            return Err(SimulatedError::new("ERR Unknown Redis command called from script"));
        };
        if !entry.has_arity(args.len()) {
            return Err(SimulatedError::new("ERR Wrong number of args calling Redis command from script"));
        }
        self.check_write(entry)?;
        if self.check_place(entry.keys(args)).is_err() {
            const TEXT: &str = "ERR Script attempted to access a non local key in a cluster node";
            return Err(SimulatedError::new(TEXT));
        }
        entry.call(&mut self.keys, args)
    }

    /// Fails if these keys are not here.
    pub(super) fn check_place(&mut self, keys: &[Vec<u8>]) -> Result<(), SimulatedError> {
        let Self { slots: Some(slots), keys: own, is_asking, .. } = self else { return Ok(()) };
        match slots.place(keys, *is_asking, |key| own.live(key).is_some()) {
            SlotPlace::Here => Ok(()),
            SlotPlace::Elsewhere(error) => Err(error),
        }
    }

    fn check_write(&self, entry: &CommandEntry) -> Result<(), SimulatedError> {
        if entry.writes && self.is_replica {
            return Err(SimulatedError::new("READONLY You can't write against a read only replica."));
        }
        Ok(())
    }

    /// CLUSTER COUNTKEYSINSLOT, the only one that scripts use.
    pub(super) fn count_keys_in_slot(&mut self, args: &[Vec<u8>]) -> CommandResult {
        match args {
            [_, name, _] if self.slots.is_none() && name.eq_ignore_ascii_case(b"COUNTKEYSINSLOT") => {
                Err(SimulatedError::new("ERR This instance has cluster support disabled"))
            }
            [_, name, slot] if name.eq_ignore_ascii_case(b"COUNTKEYSINSLOT") => {
                let slot = integer(slot)?;
                let keys = self.keys.data.names().filter(|key| i64::from(slot_of(key)) == slot);
                Ok(SimulatedReply::count(keys.count()))
            }
            _ => Err(SimulatedError::new("ERR Unknown Redis command called from script")),
        }
    }
}

/// The reply to TIME.
pub(super) fn time_reply(now: Micros) -> SimulatedReply {
    let parts = [now.0 / 1_000_000, now.0 % 1_000_000];
    SimulatedReply::bulks(parts.map(|part| part.to_string().into_bytes()))
}

/// The error of a command that does not exist.
pub(super) fn unknown(args: &[Vec<u8>]) -> SimulatedError {
    const MOST: usize = 128;
    let shown = |word: &[u8]| String::from_utf8_lossy(c_text(&word[..word.len().min(MOST)])).into_owned();
    let mut words = String::new();
    for word in &args[1..] {
        if words.len() >= MOST {
            break;
        }
        words.push_str(&format!("'{}' ", shown(&word[..word.len().min(MOST - words.len())])));
    }
    SimulatedError::from_text(format!(
        "ERR unknown command '{}', with args beginning with: {words}",
        shown(&args[0])
    ))
}
