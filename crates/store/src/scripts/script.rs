//! The text of a script.

/// A script: its source, and its SHA-1 digest for EVALSHA.
pub struct Script {
    pub(crate) source: String,
    pub(crate) sha: String,
}

/// Compares addresses: there is one instance per source.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Script {
    /// Creates a script of this text.
    pub fn new(source: String) -> Self {
        let sha = sha1_smol::Sha1::from(&source).digest().to_string();
        Self { source, sha }
    }
}
