//! Counting on the nodes within a bound that the user writes: at most `max_over` units above the limit in any window.
//!
//! * [`ApproximateBound`]: the numbers, and what follows from them.
//! * [`Places`]: the numbered places of a strategy in a store. A node counts by itself only while it holds one.
//!   `lua/approximate/places.lua` is its twin.
//! * [`HeldPlace`]: what a node knows of its place, and until when it counts.
//! * [`SharedCount`]: the counter of a key in a store. `lua/approximate/count.lua` is its twin.
//! * [`NodeCount`]: the counter of a key on a node.
//! * [`StoreClock`]: the store's time, as exactly as a node knows it.
//!
//! ```text
//!   share = ⌊max_over / (nodes − 1)⌋     units of a key that a node admits and that the store has not seen
//!
//!   the node admits     while it holds a place, has asked for the key, and owes at most its share
//!   the store decides   what would exceed the share, together with what the node owes
//!   the node pushes     all that it has admitted in the window: pushed twice, it counts once
//! ```
//!
//! When the store admits the last unit, each of the other nodes owes at most its share, so the bound is
//! (nodes − 1) · share ≤ `max_over`. It needs five rules:
//!
//! * R1. A place whose holder has gone is blocked for two windows, so that no window sees both holders.
//! * R2. A node that got its place within a window begins each key of that window at the store.
//! * R3. A key stays in the node's table until its window has ended.
//! * R4. What the store admitted is counted by the store alone, and not among what the node pushes.
//! * R5. A node whose charge was not answered counts no further until a later call is: that charge may have taken what was
//!   left. The store decides a charge that was overtaken at a limit that is smaller by one share.

mod bound;
mod held_place;
mod node_count;
mod places;
mod shared_count;
mod store_clock;

pub use bound::{ApproximateBound, ApproximateError, MAX_NODES};
pub use held_place::{HeldPlace, LocalWindow};
pub use node_count::{LocalAnswer, NodeCount};
pub use places::{PlaceAnswer, PlaceAsk, Places};
pub use shared_count::{CountAnswer, CountAsk, CountOp, NodePush, SharedCount};
pub use store_clock::StoreClock;
