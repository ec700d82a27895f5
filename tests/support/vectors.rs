//! The files of the tables.

use std::path::{Path, PathBuf};

use weir_testing::clients::root;

/// The folder of the tables.
pub fn folder() -> PathBuf {
    let default = root().join("tests/vectors");
    std::env::var_os("VECTORS_DIR").map_or(default, PathBuf::from)
}

/// Returns true if a file has tables of leases, which have a runner of their own.
pub fn is_of_leases(file: &Path) -> bool {
    let of_leases = ["leases", "aimd", "vegas", "gradient2"];
    file.file_stem().is_some_and(|stem| of_leases.iter().any(|name| stem == *name))
}

/// Returns true if a file has tables of counting on the nodes, which have a runner of their own.
pub fn is_of_nodes(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem == "bounded_sync")
}

/// Returns true if a file has tables of costs by limit and holds, which have a runner of their own.
pub fn is_of_budgets(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem == "budgets")
}

/// Returns true if a file has tables of queues, which have a runner of their own.
pub fn is_of_queues(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem == "bounded_queue")
}
