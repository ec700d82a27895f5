//! The messages and services of the wire, generated from `proto/` into `src/generated`, and their descriptors. After a change of
//! `proto/`, `cargo build -p weir-proto --features generate` writes them again.
//!
//! It knows nothing of what the messages mean. Traits of servers pass the messages of hot methods as bytes
//! ([`Encoded`]); clients pass all of them as generated types.

mod compact;
mod encoded;
pub mod health;

pub use compact::CompactCodec;
pub use encoded::{Encoded, EncodedCodec};

/// Package `weir.v1`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod v1 {
    include!("generated/weir.v1.rs");
}

/// Packages of others, as far as errors and the protocols of features need them.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod packages {
    include!("generated/packages.rs");
}
pub use self::packages::*;

/// The descriptors of everything in `proto/`, encoded: for server reflection and proto-JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");
