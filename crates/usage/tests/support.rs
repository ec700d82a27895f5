//! What these tests share with those of the workspace: the same files, so that no part stands twice.
#![allow(dead_code)] // the other binaries use the rest

#[path = "../../../tests/support/server.rs"]
pub(crate) mod server;
#[path = "../../../tests/support/usage.rs"]
pub(crate) mod usage;

pub(crate) use weir_testing::*;
