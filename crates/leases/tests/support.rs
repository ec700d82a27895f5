//! Support that these tests share with those of the workspace, as the same files.
#![allow(dead_code)] // the other binaries use the rest

#[path = "../../../tests/support/leases.rs"]
pub(crate) mod leases;
#[path = "../../../tests/support/other_server.rs"]
pub(crate) mod other_server;
#[path = "../../../tests/support/random.rs"]
pub(crate) mod random;
#[path = "../../../tests/support/server.rs"]
pub(crate) mod server;
#[path = "../../../tests/support/vectors.rs"]
pub(crate) mod vectors;

pub(crate) use weir_testing::*;
