//! Numbers of a backend, as the metrics page shows them.

/// Numbers of a backend. A part that it does not have is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackendStats {
    /// States in this process.
    pub memory: Option<MemoryStats>,
    /// Connections to the nodes of the store.
    pub connections: Option<ConnectionStats>,
    /// Script calls to cluster nodes that get one call per slot.
    pub single_slot_calls: Option<u64>,
    /// Decisions of the node by itself.
    pub local: Option<LocalStats>,
    /// Answers of the cache of denials.
    pub denials: Option<DenialStats>,
}

/// Lookups in the cache of denials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DenialStats {
    /// Calls that it answered.
    pub hits: u64,
    /// Calls for which the store was asked.
    pub misses: u64,
}

/// States in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Stored keys, including expired ones that were not dropped yet.
    pub keys: usize,
    /// Bytes of tables, entries and logs.
    pub bytes: usize,
    /// Bound of the bytes.
    pub budget: usize,
    /// Keys that were evicted before they expired.
    pub evictions: u64,
    /// New keys that were refused for lack of room.
    pub refusals: u64,
}

/// Connections to the nodes of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Connections that were opened and logged in.
    pub opened: u64,
    /// Opened connections that have ended.
    pub closed: u64,
}

/// Decisions of the node by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalStats {
    /// Decisions of this node by itself.
    pub decided: u64,
    /// The node's own states: keys, bytes, and new keys that were refused.
    pub states: MemoryStats,
    /// Keys of which the use in the store is known.
    pub known: usize,
}
