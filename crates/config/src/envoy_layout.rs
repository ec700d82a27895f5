//! How the directory of Envoy's files is laid out.

/// How a directory is laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EnvoyLayout {
    /// All files count, under their paths.
    #[default]
    Paths,
    /// All files count. Their names are their paths below the directory, with dots between the parts.
    Dotted,
    /// Only files count whose dotted name begins with this text and a dot.
    Below(String),
}
