//! The table's section `store`: the choice of the store, and the settings of all stores.

use weir_core::key::Namespace;

use super::kinds::Optional;
use super::texts::{KeySecretText, NamespaceText};
use super::value_kind::ValueKind;
use super::{Entry, MemoryConfig, Outside, Setting};

/// The flag that chooses the store. In the file the section itself is the choice, and there is no key for it.
pub(crate) const STORE: Outside = Outside::HiddenFlag("store");

/// Returns the entry of [`STORE`].
pub(crate) fn choice() -> Setting {
    let about = "Where state lives: `memory`, or `redis://HOST:PORT`, several with commas.";
    Setting {
        default: Some("memory".to_owned()),
        value_name: "STORE",
        outside: STORE,
        ..Setting::other("store", about, ValueKind::Defined("store"))
    }
}

pub(crate) const KEY_SECRET: Entry<Optional<KeySecretText>> =
    Entry::new("key_secret", None, Optional(KeySecretText, "a built-in one"))
        .about("The secret for the hash tags of keys, the same on all nodes.")
        .outside(Outside::HiddenFlag("key_secret"))
        .more(
            "The built-in secret is public: clients can choose names that overload one slot. With your \
             own secret they cannot. Prefer the variable `WEIR_KEY_SECRET`.",
        );

pub(crate) const NAMESPACE: Entry<NamespaceText> = Entry::new("namespace", Namespace::DEFAULT, NamespaceText)
    .about("The first part of every key in Redis.")
    .more(
        "Deployments with different namespaces can share a Redis. If you change it, all limits start \
         full.",
    );

/// Returns the keys of `store`.
pub(crate) fn rows() -> Vec<Setting> {
    let memory = "State in this process. It is lost when the process ends.";
    let redis = "State on Redis (6.2 or later) or Valkey, shared by any number of nodes.";
    vec![
        KEY_SECRET.row(),
        NAMESPACE.row(),
        Setting::other("memory", memory, ValueKind::Section(MemoryConfig::rows)),
        Setting::other("redis", redis, ValueKind::Defined("redis")),
    ]
}
