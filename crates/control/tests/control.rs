//! Records of live control: the same answers from Redis as from the state machine, and nodes that agree after losses.

mod bans;
mod bounds;
mod differential;
mod failing;
pub(crate) mod model;
mod rights;
mod world;
