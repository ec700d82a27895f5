//! Records of live control: the same answers from Redis as from the state machine, and nodes that agree after losses.

mod bounds;
mod differential;
mod world;
