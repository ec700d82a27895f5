//! Names of the settings of TLS to a control plane, as their mistakes name them.

/// The source of each setting: its path, or the variable that it was mapped from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct XdsTlsNames(pub(super) [String; Self::KEYS.len()]);

impl XdsTlsNames {
    pub(super) const KEYS: [&'static str; 4] = ["ca_file", "cert_file", "key_file", "server_name"];

    /// The name of the setting with this key.
    #[must_use]
    pub fn find<'n>(&'n self, key: &'n str) -> &'n str {
        let found = Self::KEYS.iter().zip(&self.0).find(|(own, _)| **own == key);
        found.map_or(key, |(_, name)| name)
    }
}
