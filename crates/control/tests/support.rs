//! What these tests share with those of the workspace: the same files, so that no part stands twice.
#![allow(dead_code)] // the other binaries use the rest

#[path = "../../../tests/support/control.rs"]
pub(crate) mod control;
#[path = "../../../tests/support/other_server.rs"]
pub(crate) mod other_server;
#[path = "../../../tests/support/random.rs"]
pub(crate) mod random;
#[path = "../../../tests/support/server.rs"]
pub(crate) mod server;

pub(crate) use weir_testing::*;
