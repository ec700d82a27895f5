//! What a node knows of the place where states live, whichever it is.

mod status;

pub use self::status::{BackendStatus, NodeStatus, Problem, Since};
