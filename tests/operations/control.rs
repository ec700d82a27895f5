//! Live control as a process: its commands, and a port of its own. The rest is in crates/control/tests.

mod command;
mod port;
