//! Support that these tests share with those of the workspace, as the same files.
#![allow(dead_code)] // the other binaries use the rest

#[path = "../../../tests/support/server.rs"]
pub(crate) mod server;
#[path = "../../../tests/support/usage.rs"]
pub(crate) mod usage;

pub(crate) use weir_testing::*;
