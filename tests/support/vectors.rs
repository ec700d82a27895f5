//! Where the tables are.

use std::path::{Path, PathBuf};

use weir_testing::clients::root;

/// The folder of the tables.
pub fn folder() -> PathBuf {
    let default = root().join("tests/vectors");
    std::env::var_os("VECTORS_DIR").map_or(default, PathBuf::from)
}

/// Whether the tables of a file are of leases, which have a runner of their own.
pub fn is_of_leases(file: &Path) -> bool {
    let of_leases = ["leases", "aimd", "vegas", "gradient2"];
    file.file_stem().is_some_and(|stem| of_leases.iter().any(|name| stem == *name))
}

/// Whether they are of counting on the nodes, which has one too.
pub fn is_of_nodes(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem == "bounded_sync")
}

/// Whether they are of costs by limit and holds, which have one too.
pub fn is_of_budgets(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem == "budgets")
}

/// Whether they are of queues, which have one too.
pub fn is_of_queues(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem == "bounded_queue")
}
