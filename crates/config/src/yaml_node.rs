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

impl YamlNode {
    /// Returns the text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        if let Content::Scalar { text, .. } = &self.content { Some(text) } else { None }
    }

    /// Returns the entries of a mapping; none of another node.
    pub(super) fn entries(&self) -> &[(Self, Self)] {
        if let Content::Map(entries) = &self.content { entries } else { &[] }
    }

    /// Returns the items of a list; none of another node.
    pub(super) fn items(&self) -> &[Self] {
        if let Content::List(items) = &self.content { items } else { &[] }
    }

    /// Returns the value of a key of a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }
}
