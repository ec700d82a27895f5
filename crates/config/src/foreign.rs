//! The tree of YAML, for features that read files in formats of others.

pub use super::errors::MistakeReport;
pub use super::tokens::read_bounded;
pub use super::tree::compose_foreign;
pub use super::values::{nearest, quote, shortened};
pub use super::watched_files::FileStamp;
pub use super::yaml_node::{Content, YamlNode};
