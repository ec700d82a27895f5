//! The fingerprint of a configuration, which tells nodes with different ones apart.

use std::fmt;

use weir_core::checksum::Fnv1a;

use super::overrides::ConfigOverrides;
use super::yaml_node::{Content, YamlNode};

/// Keys whose values are secrets.
const SECRETS: [&str; 6] = [
    "password",
    "password_command",
    "sentinel_password",
    "sentinel_password_command",
    "key_secret",
    "call_headers",
];

/// The FNV-1a hash, of 64 bits, of everything that a configuration says: the file without comments and spaces, and the
/// overrides. Secrets are left out, so that nobody can guess them by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConfigFingerprint(Fnv1a);

impl ConfigFingerprint {
    /// The fingerprint of a file's tree and the overrides.
    pub(super) fn of(tree: &YamlNode, overrides: &ConfigOverrides) -> Self {
        let mut all = Self::default();
        all.node(tree);
        for (name, text) in overrides.all() {
            all.0.text(name);
            if !SECRETS.iter().any(|secret| name.ends_with(secret)) {
                all.0.text(without_login(text));
            }
        }
        all
    }

    fn node(&mut self, node: &YamlNode) {
        match &node.content {
            Content::Empty | Content::Refused => self.0.byte(0),
            Content::Scalar { text, .. } => self.0.text(without_login(text)),
            Content::List(items) => {
                self.0.byte(1);
                items.iter().for_each(|item| self.node(item));
                self.0.byte(2);
            }
            Content::Map(entries) => {
                self.0.byte(3);
                for (key, value) in entries {
                    self.node(key);
                    let is_secret = matches!(&key.content, Content::Scalar { text, .. } if SECRETS.contains(&text.as_str()));
                    if !is_secret {
                        self.node(value);
                    }
                }
                self.0.byte(4);
            }
        }
    }
}

impl fmt::Display for ConfigFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0.sum())
    }
}

/// An address without the user and the password before its host.
fn without_login(text: &str) -> &str {
    match text.split_once("://") {
        Some((_, rest)) => rest.rsplit_once('@').map_or(text, |(_, host)| host),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, ConfigOverrides};

    const STRATEGIES: &str =
        "strategies: { s: { limits: [{ name: l, per: [consumer], token_bucket: { rate: 1/s } }] } }\n";

    fn of(text: &str, overrides: &ConfigOverrides) -> String {
        let text = format!("{STRATEGIES}{text}");
        Config::parse(&text, "weir.yaml", overrides).unwrap().fingerprint.to_string()
    }

    #[test]
    fn what_is_said_counts_and_secrets_do_not() {
        let none = ConfigOverrides::default();
        let redis = |login: &str, password: &str| {
            format!("store: {{ redis: {{ nodes: ['redis://{login}127.0.0.1:6379'] {password} }} }}")
        };
        let plain = of(&redis("", ""), &none);
        assert_eq!(plain.len(), 16);
        assert_eq!(of(&format!("# a comment\n{}", redis("", "")), &none), plain);
        assert_ne!(of("", &none), plain);
        let [one, other] = ["one", "other"].map(|word| of(&redis(&format!("u:{word}@"), ""), &none));
        assert_eq!(one, other);
        let [one, other] = ["one", "other"].map(|word| of(&redis("", &format!(", password: {word}")), &none));
        assert_eq!(one, other);
        assert_ne!(one, plain, "it has a password");
        let given =
            |name: &str, value: &str| of(&redis("", ""), &ConfigOverrides::default().with(name, value));
        assert_ne!(given("workers", "1"), given("workers", "2"));
        assert_eq!(given("redis_password", "one"), given("redis_password", "other"));
    }
}
