//! The client of a control plane that sends Envoy's domains: state of the world over one stream of gRPC.
//!
//! ```text
//!   connector.rs  TCP and TLS ── client.rs  the stream, and the next one ──┬─ exchange.rs   which answer, and when
//!                                                                          └─ sets.rs       under the overlay
//!                                                                             resources.rs  a set of messages …
//!                                                                             descriptors.rs … as domains
//!                                    update.rs  what is known ── the next snapshot
//! ```
//!
//! It knows a control plane only as a peer that may send rubbish: whatever arrives, the limits before go on.

mod backoff;
mod client;
mod connector;
mod descriptors;
mod exchange;
mod outline;
mod resources;
mod sets;
mod update;

pub use client::{XdsClient, XdsTiming};
pub use sets::XdsSets;
pub use update::{XdsUpdate, XdsUpdates};

/// The type of the resources.
const TYPE_URL: &str = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";
