//! The fingerprint of a configuration, which tells nodes with different ones apart.

use std::fmt;

use weir_core::checksum::Fnv1a;

use super::feature_setting::SettingForm;
use super::overrides::ConfigOverrides;
use super::yaml_node::{Content, YamlNode};

/// Keys whose values are secrets.
const SECRETS: [&str; 5] =
    ["password", "password_command", "sentinel_password", "sentinel_password_command", "key_secret"];

/// Sections of settings, beside those of features. Names of strategies, limits and queues are free, so a key elsewhere says nothing of its value.
const SETTINGS: [&str; 3] = ["server", "store", "log"];

/// The FNV-1a hash, of 64 bits, of what a configuration says for all nodes: the file without comments and spaces, and the
/// overrides. What each node has for itself is left out: its name, its listening addresses, and paths of local files.
/// Secrets are left out too, so that nobody can guess them by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConfigFingerprint(Fnv1a);

impl ConfigFingerprint {
    /// The fingerprint of a file's tree and the overrides.
    pub(super) fn from_tree(tree: &YamlNode, overrides: &ConfigOverrides) -> Self {
        let (mut all, keys) = (Self::default(), KeyMeanings::new(overrides));
        match &tree.content {
            Content::Map(sections) => all.sections(sections, overrides, &keys),
            _ => all.node(tree, &keys),
        }
        let key = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
        for (name, text) in overrides.given.all().filter(|(name, _)| !keys.is_of_the_node(&key(name))) {
            all.0.text(name);
            if !keys.secrets.iter().any(|secret| name.ends_with(secret)) {
                all.0.text(without_login(text));
            }
        }
        all
    }

    fn sections(
        &mut self,
        sections: &[(YamlNode, YamlNode)],
        overrides: &ConfigOverrides,
        keys: &KeyMeanings,
    ) {
        let has_settings = |name: &str| SETTINGS.contains(&name) || overrides.has_settings(name);
        for (key, value) in sections {
            if !key.text().is_some_and(has_settings) {
                self.node(key, keys);
                self.node(value, keys);
            } else if let Some(shared) = keys.shared(value) {
                self.node(key, keys);
                self.node(&shared, keys);
            }
        }
    }

    fn node(&mut self, node: &YamlNode, keys: &KeyMeanings) {
        match &node.content {
            Content::Empty | Content::Refused => self.0.byte(0),
            Content::Scalar { text, .. } => self.0.text(without_login(text)),
            Content::List(items) => {
                self.0.byte(1);
                items.iter().for_each(|item| self.node(item, keys));
                self.0.byte(2);
            }
            Content::Map(entries) => {
                self.0.byte(3);
                for (key, value) in entries {
                    self.node(key, keys);
                    if !key.text().is_some_and(|text| keys.secrets.contains(&text)) {
                        self.node(value, keys);
                    }
                }
                self.0.byte(4);
            }
        }
    }
}

/// The meanings of keys, those of features too.
struct KeyMeanings {
    /// Their values are secrets.
    secrets: Vec<&'static str>,
    /// Settings that nodes with the same configuration have for themselves: the name of the node, its listening
    /// addresses, and paths of local files. What the files say is no part of a configuration either.
    own: Vec<&'static str>,
}

impl KeyMeanings {
    fn new(overrides: &ConfigOverrides) -> Self {
        let own = ["node", "listen", "listen_mode", "control_listen", "admin", "file", "trust_domains"];
        let (mut secrets, mut own) = (SECRETS.to_vec(), own.to_vec());
        for setting in overrides.feature_settings() {
            match setting.form {
                SettingForm::File(_) => own.extend([Some(setting.key), setting.flag].into_iter().flatten()),
                SettingForm::Secret(_) => secrets.push(setting.key),
                _ => {}
            }
        }
        Self { secrets, own }
    }

    fn is_of_the_node(&self, key: &str) -> bool {
        self.own.contains(&key) || key.ends_with("_file")
    }

    /// A part of a section of settings without what each node has for itself; `None` if nothing else is in it.
    fn shared(&self, node: &YamlNode) -> Option<YamlNode> {
        let content = match &node.content {
            Content::Map(entries) => {
                let kept = entries.iter().filter_map(|(key, value)| match key.text() {
                    Some(text) if self.is_of_the_node(text) => None,
                    _ => Some((key.clone(), self.shared(value)?)),
                });
                let kept: Vec<_> = kept.collect();
                if kept.is_empty() && !entries.is_empty() {
                    return None;
                }
                Content::Map(kept)
            }
            Content::List(items) => {
                Content::List(items.iter().filter_map(|item| self.shared(item)).collect())
            }
            _ => return Some(node.clone()),
        };
        Some(YamlNode { content, ..node.clone() })
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

    fn hash(text: &str, overrides: &ConfigOverrides) -> String {
        let text = format!("{STRATEGIES}{text}");
        Config::parse(&text, "weir.yaml", overrides).unwrap().fingerprint.to_string()
    }

    #[test]
    fn what_is_said_counts_and_secrets_do_not() {
        let none = ConfigOverrides::default();
        let redis = |login: &str, password: &str| {
            format!("store: {{ redis: {{ nodes: ['redis://{login}127.0.0.1:6379'] {password} }} }}")
        };
        let plain = hash(&redis("", ""), &none);
        assert_eq!(plain.len(), 16);
        assert_eq!(hash(&format!("# a comment\n{}", redis("", "")), &none), plain);
        assert_ne!(hash("", &none), plain);
        let [one, other] = ["one", "other"].map(|word| hash(&redis(&format!("u:{word}@"), ""), &none));
        assert_eq!(one, other);
        let [one, other] =
            ["one", "other"].map(|word| hash(&redis("", &format!(", password: {word}")), &none));
        assert_eq!(one, other);
        assert_ne!(one, plain, "it has a password");
        let given =
            |name: &str, value: &str| hash(&redis("", ""), &ConfigOverrides::default().with(name, value));
        assert_ne!(given("workers", "1"), given("workers", "2"));
        assert_eq!(given("redis_password", "one"), given("redis_password", "other"));
    }

    /// Nodes with equal files have equal hashes, whatever their names, addresses and folders are.
    #[test]
    fn what_a_node_has_for_itself_does_not_count() {
        let none = ConfigOverrides::default();
        let plain = hash("", &none);
        for own in [
            "server: { listen: 127.0.0.1:1, admin: 127.0.0.1:2 }",
            "server: { listen: 'unix:/tmp/weir', listen_mode: '0600' }",
        ] {
            assert_eq!(hash(own, &none), plain, "{own}");
        }
        let logs = |path: &str| hash(&format!("log: {{ decisions: {{ keys: 1, file: {path} }} }}"), &none);
        assert!(logs("/tmp/a") == logs("/tmp/b") && logs("/tmp/a") != plain);
        let given = |name: &str, value: &str| hash("", &none.clone().with(name, value));
        assert_eq!(given("listen", "127.0.0.1:9"), plain);
        assert_eq!(given("admin", "127.0.0.1:9"), plain);
        for shared in ["server: { workers: 3 }", "log: { decisions: { denied: true } }"] {
            assert_ne!(hash(shared, &none), plain, "{shared}");
        }
        // A limit may have any name.
        let named = |rate: &str| {
            let limit = format!("{{ name: node, per: [consumer], token_bucket: {{ rate: {rate} }} }}");
            let text = format!("strategies: {{ s: {{ limits: [{limit}] }} }}\n");
            let text = format!(
                "{text}overrides: [{{ strategy: s, consumer: c, limits: {{ node: {{ token_bucket: {{ rate: 5/1s }} }} }} }}]"
            );
            Config::parse(&text, "weir.yaml", &none).map(|config| config.fingerprint.to_string())
        };
        assert_ne!(named("1/1s"), named("2/1s"));
    }
}
