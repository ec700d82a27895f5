//! The numbers of a bound.

use weir_units::Micros;

/// The most nodes of one strategy: each has a field in the state of each key.
pub const MAX_NODES: u64 = 1_000;

/// The largest bound: as the largest limit.
const MAX_OVER: u64 = 1 << 52;

/// Bounds of the time within which a node spends a chunk.
pub const MIN_CHUNK_AGE: Micros = Micros(100_000);
/// The longest one.
pub const MAX_CHUNK_AGE: Micros = Micros::from_secs(10);

/// What "window" means for the places of nodes that take chunks of a bucket, which has none.
const BUCKET_WINDOW: Micros = Micros::from_secs(10);

/// How many units more than its limit a strategy may admit, and how many nodes may count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApproximateBound {
    mode: ApproximateMode,
    nodes: u64,
    window: Micros,
}

/// How nodes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApproximateMode {
    /// A node admits some units, and tells the store later. All nodes together may admit so many above the limit.
    Over {
        /// The most units above the limit in a window.
        max_over: u64,
    },
    /// A node takes chunks from the store, and admits what it has taken.
    Chunks(ChunkTerms),
}

/// What nodes take, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkTerms {
    /// The units of a chunk.
    pub chunk: u64,
    /// Within which time a node spends it.
    pub max_age: Micros,
    /// What the chunks are of.
    pub of: ChunkLimit,
}

/// A kind of limit that chunks can be taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkLimit {
    /// A token bucket.
    Bucket,
    /// An aligned window of this length.
    Window(Micros),
}

/// Why numbers are no bound.
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
    /// Chunks that are not for all nodes at once.
    #[error("`chunk` is {chunk}; it must be from 1 to {most}: `nodes` = {nodes} nodes may each take one of the limit of {limit}",
            most = limit / nodes)]
    Chunk {
        /// The units of a chunk.
        chunk: u64,
        /// The nodes.
        nodes: u64,
        /// The limit.
        limit: u64,
    },
    /// Chunks of which a limit has not even one unit for each node.
    #[error(
        "a `chunk` is at least 1, and `nodes` = {nodes} nodes may each take one: the limit of {limit} must be at least {nodes}"
    )]
    ChunkLimit {
        /// The nodes.
        nodes: u64,
        /// The limit.
        limit: u64,
    },
    /// A time that is out of bounds.
    #[error("`max_age` is {0}; it must be from {MIN_CHUNK_AGE} to {MAX_CHUNK_AGE}")]
    MaxAge(Micros),
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
        Ok(Self { mode: ApproximateMode::Over { max_over }, nodes, window })
    }

    /// Chunks that `nodes` nodes take.
    pub const fn of_chunks(terms: ChunkTerms, nodes: u64) -> Result<Self, ApproximateError> {
        if nodes < 2 || nodes > MAX_NODES {
            return Err(ApproximateError::Nodes(nodes));
        }
        let age = terms.max_age.0;
        if age < MIN_CHUNK_AGE.0 || age > MAX_CHUNK_AGE.0 {
            return Err(ApproximateError::MaxAge(terms.max_age));
        }
        let window = match terms.of {
            ChunkLimit::Window(window) => window,
            // What a node has taken may be given back for twice its age. It must be gone when another node has its place.
            ChunkLimit::Bucket if BUCKET_WINDOW.0 < 2 * age => Micros(2 * age),
            ChunkLimit::Bucket => BUCKET_WINDOW,
        };
        Ok(Self { mode: ApproximateMode::Chunks(terms), nodes, window })
    }

    /// Checks that it can be the bound of this limit.
    pub const fn check(&self, limit: u64) -> Result<(), ApproximateError> {
        let nodes = self.nodes;
        match self.mode {
            ApproximateMode::Over { .. } => {
                let share = self.share();
                if share < limit { Ok(()) } else { Err(ApproximateError::Share { share, limit }) }
            }
            ApproximateMode::Chunks(_) if limit < nodes => Err(ApproximateError::ChunkLimit { nodes, limit }),
            ApproximateMode::Chunks(ChunkTerms { chunk, .. }) if chunk < 1 || chunk > limit / nodes => {
                Err(ApproximateError::Chunk { chunk, nodes, limit })
            }
            ApproximateMode::Chunks(_) => Ok(()),
        }
    }

    /// How nodes count.
    #[must_use]
    pub const fn mode(&self) -> ApproximateMode {
        self.mode
    }

    /// What nodes take, if they take chunks.
    #[must_use]
    pub const fn chunks(&self) -> Option<ChunkTerms> {
        match self.mode {
            ApproximateMode::Over { .. } => None,
            ApproximateMode::Chunks(terms) => Some(terms),
        }
    }

    /// The most units above the limit: in a window, or of a bucket in any time above what it admits in that time.
    #[must_use]
    pub const fn max_over(&self) -> u64 {
        match self.mode {
            ApproximateMode::Over { max_over } => max_over,
            ApproximateMode::Chunks(ChunkTerms { of: ChunkLimit::Window(_), .. }) => 0,
            ApproximateMode::Chunks(ChunkTerms { chunk, of: ChunkLimit::Bucket, .. }) => {
                chunk.saturating_mul(self.nodes)
            }
        }
    }

    /// The number of places.
    #[must_use]
    pub const fn nodes(&self) -> u64 {
        self.nodes
    }

    /// The length of a window, in which a node that hears nothing of its place may still count. Of a bucket it is the time
    /// that stands for one.
    #[must_use]
    pub const fn window(&self) -> Micros {
        self.window
    }

    /// The most units of a key that a node may owe; none where nodes take chunks.
    #[must_use]
    pub const fn share(&self) -> u64 {
        match self.mode {
            ApproximateMode::Over { max_over } => max_over / (self.nodes - 1),
            ApproximateMode::Chunks(_) => 0,
        }
    }

    /// How long a node waits from one heartbeat to the next: a quarter of a window, and 5 s at most.
    #[must_use]
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

    #[test]
    fn chunks_are_for_all_nodes_at_once() {
        let new =
            |chunk, nodes, max_age, of| ApproximateBound::of_chunks(ChunkTerms { chunk, max_age, of }, nodes);
        let (second, minute) = (Micros::from_secs(1), ChunkLimit::Window(Micros::from_secs(60)));
        let bound = new(100, 10, second, minute).unwrap();
        assert_eq!((bound.max_over(), bound.share(), bound.window()), (0, 0, Micros::from_secs(60)));
        assert_eq!(bound.check(1_000), Ok(()));
        let error = bound.check(999).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`chunk` is 100; it must be from 1 to 99: `nodes` = 10 nodes may each take one of the limit of 999"
        );
        assert_eq!(bound.check(9), Err(ApproximateError::ChunkLimit { nodes: 10, limit: 9 }));
        assert!(matches!(new(0, 10, second, minute).unwrap().check(99), Err(ApproximateError::Chunk { .. })));
        assert_eq!(new(1, 1, second, minute), Err(ApproximateError::Nodes(1)));
        for age in [MIN_CHUNK_AGE.0 - 1, MAX_CHUNK_AGE.0 + 1] {
            assert_eq!(new(1, 2, Micros(age), minute), Err(ApproximateError::MaxAge(Micros(age))));
        }
        let bucket = new(5, 10, second, ChunkLimit::Bucket).unwrap();
        assert_eq!((bucket.max_over(), bucket.window()), (50, Micros::from_secs(10)));
        let long = new(5, 10, MAX_CHUNK_AGE, ChunkLimit::Bucket).unwrap();
        assert_eq!(
            long.window(),
            Micros::from_secs(20),
            "a place is blocked until nothing can be given back"
        );
    }
}
