//! Servers of Redis in this process, which execute the real text of scripts. They have no threads, no sockets and no
//! clock.
//!
//! They behave like Redis 7.0 in all that Weir's scripts and nodes use: `tests` compares them with a real one.

mod commands;
mod error_text;
mod hashes;
mod key_commands;
mod keyspace;
mod lists;
mod lua_errors;
mod lua_struct;
mod lua_values;
mod node_state;
mod numbers;
mod reply;
mod requests;
mod scans;
mod score_ranges;
mod scored;
mod scored_members;
mod script_engine;
mod server_commands;
mod server_core;
mod session;
mod session_state;
mod set_options;
mod slots;
mod stored;
mod stored_stream;
mod streams;
mod strings;

use std::sync::Arc;

use parking_lot::Mutex;

use self::server_core::ServerCore;
pub use self::server_core::{ScriptObserver, ScriptRun, SimulatedTime};
pub use self::session::SimulatedConnection;
pub use self::slots::{SimulatedNode, SimulatedRange, SimulatedSlots, slot_of};
pub use self::stored::SimulatedData;

/// A server. Clones share it.
#[derive(Clone)]
pub struct SimulatedRedis {
    core: Arc<Mutex<ServerCore>>,
}

impl SimulatedRedis {
    /// Makes a server without data. `time` is its own clock, which may step; it must not call the server.
    pub fn new(name: impl Into<String>, time: SimulatedTime) -> Self {
        Self { core: Arc::new(Mutex::new(ServerCore::new(name.into(), time))) }
    }

    /// Opens a connection.
    pub fn connect(&self) -> SimulatedConnection {
        SimulatedConnection::new(Arc::clone(&self.core))
    }

    /// A copy of all data. It costs little.
    pub fn data(&self) -> SimulatedData {
        self.core.lock().node.lock().keys.data.clone()
    }

    /// Replaces all data, for example by that of a replica that lacks the last writes.
    pub fn restore(&self, data: SimulatedData) {
        self.core.lock().node.lock().keys.data = data;
    }

    /// Removes all data, as FLUSHALL does.
    pub fn flush(&self) {
        self.restore(SimulatedData::default());
    }

    /// Forgets all scripts, as SCRIPT FLUSH and a restart do.
    pub fn forget_scripts(&self) {
        self.core.lock().forget_scripts();
    }

    /// Makes it a node of a cluster with this view of the slots; `None` makes it a standalone server.
    pub fn serve_slots(&self, slots: Option<SimulatedSlots>) {
        self.core.lock().node.lock().slots = slots;
    }

    /// Makes it a replica, which refuses writes, or a master.
    pub fn set_replica(&self, is_replica: bool) {
        self.core.lock().node.lock().is_replica = is_replica;
    }

    /// Sets the history of the data in INFO: the id of the current one, and that of the one before the last failover.
    pub fn set_histories(&self, own: impl Into<String>, former: impl Into<String>) {
        self.core.lock().node.lock().histories = [own.into(), former.into()];
    }

    /// Sets the id of the process in INFO, which is 1 at first.
    pub fn set_process_id(&self, id: u32) {
        self.core.lock().process_id = id;
    }

    /// Replaces a piece of each script that is loaded from now on, as a mistake in it would. For tests that must find it.
    pub fn change_scripts(&self, from: impl Into<String>, to: impl Into<String>) {
        self.core.lock().changes.push((from.into(), to.into()));
    }

    /// Calls `observer` after each script, in the order in which they run.
    pub fn on_script(&self, observer: ScriptObserver) {
        self.core.lock().observer = Some(observer);
    }
}

#[cfg(test)]
mod tests;
