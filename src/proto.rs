//! The wire's types, generated from `proto/`, and their descriptors.

/// Package `weir.v1`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/weir.v1.rs"));
}

/// The descriptors of everything in `proto/`, encoded: for server reflection and proto-JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
