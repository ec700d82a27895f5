//! Beginning of every key: the deployment's namespace and the hash tag.

use std::borrow::Cow;
use std::fmt;

use super::tag::write_digits;

/// The first part of every key in Redis. Deployments with different namespaces can share a Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(Cow<'static, str>);

/// The longest namespace, in bytes.
pub const MAX_NAMESPACE: usize = 32;

/// A text that cannot be a namespace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a namespace has 1 to {MAX_NAMESPACE} of the characters a-z 0-9 -")]
pub struct NamespaceError;

/// Key prefix of one decision: the namespace and the hash tag.
#[derive(Debug, Clone, Copy)]
pub struct KeyPrefix<'n> {
    namespace: &'n Namespace,
    tag: u128,
}

impl Namespace {
    /// The default namespace.
    pub const DEFAULT: Self = Self(Cow::Borrowed("weir"));

    /// The namespace `text`. It has no characters that separate the parts of a key or are special in patterns of
    /// Redis' access rights.
    pub fn new(text: &str) -> Result<Self, NamespaceError> {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if text.is_empty() || text.len() > MAX_NAMESPACE || !text.bytes().all(plain) {
            return Err(NamespaceError);
        }
        Ok(Self(Cow::Owned(text.to_owned())))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key prefix with this tag.
    pub fn prefix(&self, tag: u128) -> KeyPrefix<'_> {
        KeyPrefix { namespace: self, tag }
    }

    /// Key of the nodes' secret fingerprints. Its tag is the only one that is not a hash, so that nodes with other
    /// secrets find it. No other key has this tag, because that of a decision has four
    /// characters.
    pub fn fingerprint_key(&self) -> String {
        format!("{self}:{{key_secret}}:fingerprint")
    }

    /// Key of what a node says of its rules, beside the fingerprints; without a name, the key of the nodes' names.
    pub fn rules_key(&self, node: &str) -> String {
        let kind = if node.is_empty() { "nodes" } else { "rules:" };
        format!("{self}:{{key_secret}}:{kind}{node}")
    }

    /// Key of usage data that nodes share: `name` is made of their own names, never of a caller's. The hash tag
    /// cannot be a decision's, which has four characters.
    pub fn usage_key(&self, name: &str) -> String {
        format!("{self}:{{usage}}:{name}")
    }

    /// Key of live control, which all nodes share: `name` is a constant. The hash tag cannot be a decision's, which has
    /// four characters.
    pub fn control_key(&self, name: &str) -> String {
        format!("{self}:{{control}}:{name}")
    }
}

impl KeyPrefix<'_> {
    /// Appends `NAMESPACE:{TAG}`, the prefix of every key of a decision. No other function writes it.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.namespace.0.as_bytes());
        out.extend_from_slice(b":{");
        write_digits(out, self.tag);
        out.push(b'}');
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
