//! The table's section `control`: where live control keeps what it knows.

use std::path::PathBuf;

use super::kinds::{FilePath, Optional};
use super::{Applies, Outside, section};

section! {
    /// Files of live control.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ControlConfig {
        before: [],

        /// The file with the last known entries of live control.
        pub cache_file: Option<PathBuf> = None => {
            kind: Optional(FilePath, "none"),
            outside: Outside::Flag("control_cache_file"),
            applies: Applies::AtRestart,
            more: "A node starts from it while Redis is away. Needed on the memory store, where the entries live nowhere \
                   else. It is replaced by a rename, so its directory must be writable.",
        }

        after: [],
        others: {}
    }
}
