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

/// Envoy's packages, as far as its rate limit and discovery protocols need them.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod envoy {
    pub mod config {
        pub mod core {
            pub mod v3 {
                include!("generated/envoy.config.core.v3.rs");
            }
        }
    }
    pub mod extensions {
        pub mod common {
            pub mod ratelimit {
                pub mod v3 {
                    include!("generated/envoy.extensions.common.ratelimit.v3.rs");
                }
            }
        }
    }
    pub mod service {
        pub mod discovery {
            pub mod v3 {
                include!("generated/envoy.service.discovery.v3.rs");
            }
        }
        pub mod ratelimit {
            pub mod v3 {
                include!("generated/envoy.service.ratelimit.v3.rs");
            }
        }
    }
    pub mod r#type {
        pub mod v3 {
            include!("generated/envoy.type.v3.rs");
        }
    }
}

/// Google's packages, as far as errors and Envoy's discovery protocol need them.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod google {
    pub mod rpc {
        include!("generated/google.rpc.rs");
    }
}

/// The limits of envoyproxy/ratelimit, as control planes send them.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod ratelimit {
    pub mod config {
        pub mod ratelimit {
            pub mod v3 {
                include!("generated/ratelimit.config.ratelimit.v3.rs");
            }
        }
    }
}

/// The descriptors of everything in `proto/`, encoded: for server reflection and proto-JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");
