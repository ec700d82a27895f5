//! The messages and services of the wire, generated from `proto/`, and their descriptors.
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
    include!(concat!(env!("OUT_DIR"), "/weir.v1.rs"));
    include!(concat!(env!("OUT_DIR"), "/weir.v1.services.rs"));
}

/// Envoy's packages, as far as its rate limit and discovery protocols need them.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod envoy {
    pub mod config {
        pub mod core {
            pub mod v3 {
                include!(concat!(env!("OUT_DIR"), "/envoy.config.core.v3.rs"));
            }
        }
    }
    pub mod extensions {
        pub mod common {
            pub mod ratelimit {
                pub mod v3 {
                    include!(concat!(env!("OUT_DIR"), "/envoy.extensions.common.ratelimit.v3.rs"));
                }
            }
        }
    }
    pub mod service {
        pub mod discovery {
            pub mod v3 {
                include!(concat!(env!("OUT_DIR"), "/envoy.service.discovery.v3.rs"));
                include!(concat!(
                    env!("OUT_DIR"),
                    "/envoy.service.discovery.v3.AggregatedDiscoveryService.rs"
                ));
            }
        }
        pub mod ratelimit {
            pub mod v3 {
                include!(concat!(env!("OUT_DIR"), "/envoy.service.ratelimit.v3.rs"));
                include!(concat!(env!("OUT_DIR"), "/envoy.service.ratelimit.v3.RateLimitService.rs"));
            }
        }
    }
    pub mod r#type {
        pub mod v3 {
            include!(concat!(env!("OUT_DIR"), "/envoy.r#type.v3.rs"));
        }
    }
}

/// Google's packages, as far as errors and Envoy's discovery protocol need them.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod google {
    pub mod rpc {
        include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
    }
}

/// The limits of envoyproxy/ratelimit, as control planes send them.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod ratelimit {
    pub mod config {
        pub mod ratelimit {
            pub mod v3 {
                include!(concat!(env!("OUT_DIR"), "/ratelimit.config.ratelimit.v3.rs"));
            }
        }
    }
}

/// The descriptors of everything in `proto/`, encoded: for server reflection and proto-JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
