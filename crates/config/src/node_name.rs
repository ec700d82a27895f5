//! The name of a node: the configured one, or that of its host.

use super::Config;
use super::values::{Scalar, quote};

/// Maximum length of the name.
const MAX_NODE: usize = 64;

/// The names that are valid, as a regular expression.
pub(super) const PATTERN: &str = "^[A-Za-z0-9._-]{1,64}$";

impl Config {
    /// Returns the name of this node: the one that a section of a feature has, or the host name.
    #[must_use]
    pub fn node_name(&self) -> String {
        let named = self.sections.iter().find_map(|section| section.node.clone());
        named.unwrap_or_else(host_name)
    }
}

/// Parses a name that can be a part of a key.
pub(super) fn node_name(scalar: Scalar<'_>) -> Result<String, String> {
    let text = scalar.text;
    if text.is_empty() || text.len() > MAX_NODE || !text.chars().all(is_plain) {
        return Err(format!("{} is no name of a node: {}", quote(text), bounds()));
    }
    Ok(text.to_owned())
}

/// Returns the bounds, as formatted in the reference.
pub(super) fn bounds() -> String {
    format!("1 to {MAX_NODE} letters, digits, `.`, `_` and `-`")
}

/// Returns the host name, as far as it can be a part of a key.
fn host_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let plain = |letter: char| if is_plain(letter) { letter } else { '-' };
    let host: String = host.chars().take(MAX_NODE).map(plain).collect();
    if host.is_empty() { "node".to_owned() } else { host }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._-".contains(letter)
}
