//! Support that these tests share with those of the workspace, as the same files.
#![allow(dead_code)] // the other binaries use the rest

#[path = "../../../tests/support/ads.rs"]
pub(crate) mod ads;
#[path = "../../../tests/support/as_messages.rs"]
pub(crate) mod as_messages;
#[path = "../../../tests/support/grpc.rs"]
pub(crate) mod grpc;
#[path = "../../../tests/support/server.rs"]
pub(crate) mod server;

pub(crate) use weir_testing::*;
