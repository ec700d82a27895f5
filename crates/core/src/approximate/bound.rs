//! The numbers of a bound.

use weir_units::Micros;

/// The most nodes of one strategy: each has a field in the state of each key.
pub const MAX_NODES: u64 = 1_000;

/// The largest bound: as the largest limit.
const MAX_OVER: u64 = 1 << 52;

/// Units that a strategy may admit above its limit, and number of nodes that may count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApproximateBound {
    max_over: u64,
    nodes: u64,
    window: Micros,
}

/// Reason that numbers are no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApproximateError {
    /// Too few or too many nodes.
    #[error("`nodes` is {0}; it must be from 2 to {MAX_NODES}")]
    Nodes(u64),
    /// A bound below one unit for each other node, or too large.
    #[error("`max_over` is {max_over}; with {nodes} nodes it must be from {least} to 2^52: one unit for each other node",
            least = nodes - 1)]
    MaxOver {
        /// The bound.
        max_over: u64,
        /// The nodes.
        nodes: u64,
    },
    /// A share that is not below the limit.
    #[error(
        "each node may admit {share} units that the others have not seen (`max_over` divided by `nodes` − 1), which must be \
         less than the limit of {limit}"
    )]
    Share {
        /// The share of a node.
        share: u64,
        /// The limit.
        limit: u64,
    },
}

impl ApproximateBound {
    /// At most `max_over` units above the limits in each `window`, by `nodes` nodes.
    pub const fn new(max_over: u64, nodes: u64, window: Micros) -> Result<Self, ApproximateError> {
        if nodes < 2 || nodes > MAX_NODES {
            return Err(ApproximateError::Nodes(nodes));
        }
        if max_over < nodes - 1 || max_over > MAX_OVER {
            return Err(ApproximateError::MaxOver { max_over, nodes });
        }
        Ok(Self { max_over, nodes, window })
    }

    /// Checks that it can be the bound of this limit.
    pub const fn check(&self, limit: u64) -> Result<(), ApproximateError> {
        let share = self.share();
        if share < limit { Ok(()) } else { Err(ApproximateError::Share { share, limit }) }
    }

    /// The most units above the limit in a window.
    pub const fn max_over(&self) -> u64 {
        self.max_over
    }

    /// The number of places.
    pub const fn nodes(&self) -> u64 {
        self.nodes
    }

    /// The length of a window, in which a node that hears nothing of its place may still count.
    pub const fn window(&self) -> Micros {
        self.window
    }

    /// The most units of a key that a node may owe.
    pub const fn share(&self) -> u64 {
        self.max_over / (self.nodes - 1)
    }

    /// Returns the time for which a node waits from one heartbeat to the next: a quarter of a window, and 5 s at most.
    pub const fn heartbeat(&self) -> Micros {
        let quarter = self.window.0 / 4;
        Micros(if quarter < 5_000_000 { quarter } else { 5_000_000 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_bounds_are_named() {
        let new = |max_over, nodes| ApproximateBound::new(max_over, nodes, Micros::from_secs(60));
        assert_eq!(new(50, 1), Err(ApproximateError::Nodes(1)));
        assert_eq!(new(5_000, MAX_NODES + 1), Err(ApproximateError::Nodes(MAX_NODES + 1)));
        assert_eq!(new(8, 10), Err(ApproximateError::MaxOver { max_over: 8, nodes: 10 }));
        assert_eq!(
            new(8, 10).unwrap_err().to_string(),
            "`max_over` is 8; with 10 nodes it must be from 9 to 2^52: one unit for each other node"
        );
        let bound = new(50, 10).unwrap();
        assert_eq!((bound.share(), bound.heartbeat().0), (5, 5_000_000));
        assert_eq!(bound.check(5), Err(ApproximateError::Share { share: 5, limit: 5 }));
        assert_eq!(bound.check(6), Ok(()));
        assert_eq!(new(9, 10).unwrap().share(), 1);
    }
}
