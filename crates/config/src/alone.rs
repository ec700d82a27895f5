//! A feature that serves alone.

/// A feature that serves alone, in the place of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServesAlone {
    /// The name of the feature.
    pub feature: &'static str,
    /// Labels of every metric.
    pub labels: Vec<(String, String)>,
    /// True if the admin port is served too.
    pub admin: bool,
}
