//! Names that the configuration does not have.

use crate::near::or_near;

/// A name that the configuration does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// No strategy of that name.
    #[error("strategy: there is no strategy `{name}`{}", or_near("similar", near))]
    Strategy {
        /// The requested name.
        name: String,
        /// At most three configured names that look like it.
        near: Vec<String>,
    },
    /// No pattern matches the resource, and the request names no strategy.
    #[error(
        "resource: no pattern of the configuration matches `{name}`; name a strategy in the request{}",
        or_near("configured", near)
    )]
    Resource {
        /// The requested name.
        name: String,
        /// At most three configured strategies.
        near: Vec<String>,
    },
}
