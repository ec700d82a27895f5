//! The nodes of a parsed file.

use super::errors::Position;

/// A node of the tree.
#[derive(Debug, Clone)]
pub struct YamlNode {
    /// The start of the value; that of its key, if the value is empty.
    pub at: Position,
    /// The content of the value.
    pub content: Content,
    /// True if a syntax error truncated it, so that missing parts may just not have been read.
    pub cut: bool,
}

/// The content of a node.
#[derive(Debug, Clone)]
pub enum Content {
    /// Nothing: an empty value, `~` or `null`.
    Empty,
    /// A scalar.
    Scalar {
        /// The text of the value, without quotes.
        text: String,
        /// True if it was quoted or a block scalar, and so is text.
        quoted: bool,
    },
    /// A list.
    List(Vec<YamlNode>),
    /// A mapping: keys and values, in the order of the file.
    Map(Vec<(YamlNode, YamlNode)>),
    /// A mistake that was reported already.
    Refused,
}
