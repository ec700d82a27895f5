//! Result codes of live control.

use crate::scripts::codes;

codes! {
    /// Result codes of live control.
    control_status {
        WRITTEN = 1,
        STALE = 2,
        FULL = 3,
        MISSING = 4,
        SINCE = 5,
        EVERYTHING = 6,
    }
}
