//! The table of settings. Each setting is defined here once: key, kind with its bounds, default, text, flag, and
//! whether a change needs a restart. A file per section.
//!
//! ```text
//!   table/server, limits, ...  ── entries ──┬─ reader       Mapping::setting, Mapping::value
//!         kinds  parse, format, bounds      ├─ schema       weir schema
//!                                           ├─ command      flags, variables and --help of weir serve
//!                                           └─ reference    tables of the configuration pages
//! ```
//!
//! `section!` generates the type of a section, its default and its reader from the entries. A setting that is read
//! together with other keys (a login, the files of TLS) is a separate [`Entry`], which the section's reader takes.

mod change;
mod entry;
mod kinds;
mod limits;
pub(super) mod log;
mod memory;
mod messages;
mod numbers;
mod read;
pub(super) mod redis;
mod reference;
mod server;
pub(super) mod store;
mod texts;
mod tls;
mod value_kind;

pub use self::change::SettingChange;
pub use self::entry::{Applies, Setting};
pub use self::limits::{MAX_BATCH_BYTES, ServerLimits};
pub use self::memory::MemoryConfig;
pub use self::messages::DenialMessages;
pub use self::redis::RedisConfig;
pub use self::reference::{reference, reference_table};
pub use self::server::{AdminPath, Plaintext, ServerConfig};
pub use self::tls::{CrlConfig, TlsConfig};
pub use self::value_kind::ValueKind;

pub(super) use self::entry::Entry;
pub(super) use self::kinds::{FilePath, Optional, Ratio, SettingKind};
pub(super) use self::memory::MIN_SHARE;
use self::redis::tls_rows;
pub(super) use self::texts::{HeaderName, Password, Username};
pub(super) use self::tls::FILE as TLS_FILE;
use super::given::Outside;

/// A function that returns the entries of a section, in the order of the outputs.
pub(super) type Rows = fn() -> Vec<Setting>;

/// Every section of the table.
const SECTIONS: [(&str, Rows); 11] = [
    ("server", ServerConfig::rows),
    ("server.tls", TlsConfig::rows),
    ("server.tls.client_crl", CrlConfig::rows),
    ("server.limits", ServerLimits::rows),
    ("store", store::rows),
    ("store.memory", MemoryConfig::rows),
    ("store.redis", RedisConfig::rows),
    ("store.redis.tls", tls_rows),
    ("messages", DenialMessages::rows),
    ("log", log::rows),
    ("log.decisions", log::decision_rows),
];

/// Returns all settings with their paths.
#[must_use]
pub fn settings() -> Vec<(String, Setting)> {
    let mut all = vec![("store".to_owned(), store::choice())];
    for (section, rows) in SECTIONS {
        all.extend(rows().into_iter().map(|row| (format!("{section}.{}", row.key), row)));
    }
    all
}

/// Generates a section of the configuration: its type, `Default`, reader and description.
///
/// An entry is a field with its text, type, default and kind, and the columns of [`Entry`] that it needs. `before` and `after`
/// are keys that the section's reader takes itself; `others` are fields without a single key.
macro_rules! section {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            before: $before:expr,
            $(
                $(#[doc = $about:literal])+
                pub $field:ident: $type:ty = $default:expr => {
                    kind: $kind:expr,
                    $( $column:ident: $value:expr, )*
                }
            )*
            after: $after:expr,
            others: { $( $(#[$other_meta:meta])* pub $other:ident: $other_type:ty = $other_default:expr, )* }
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $( $(#[doc = $about])+ pub $field: $type, )*
            $( $(#[$other_meta])* pub $other: $other_type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* $( $other: $other_default, )* }
            }
        }

        impl $name {
            /// Returns the entries of the section.
            pub(crate) fn rows() -> Vec<$crate::table::Setting> {
                let mut rows: Vec<$crate::table::Setting> = $before.into();
                $( rows.push(
                    $crate::table::Entry::new(stringify!($field), $default, $kind)
                        .about(concat!($($about),+))
                        $(.$column($value))*
                        .row(),
                ); )*
                rows.extend($after);
                rows
            }

            /// Reports the settings of `section` whose values differ in `next`.
            pub(crate) fn changes(
                &self,
                next: &Self,
                section: &str,
                changes: &mut Vec<$crate::table::SettingChange>,
            ) {
                $( if self.$field != next.$field {
                    let entry = $crate::table::Entry::new(stringify!($field), $default, $kind)
                        $(.$column($value))*;
                    changes.push($crate::table::SettingChange::new(
                        &entry,
                        section,
                        &self.$field,
                        &next.$field,
                    ));
                } )*
                let _ = (next, section, changes);
            }

            /// Reads the section; absent settings and the other fields have their defaults.
            pub(crate) fn read(
                fields: &mut $crate::fields::Mapping<'_>,
                given: &$crate::given::GivenSettings,
                report: &mut $crate::errors::MistakeReport,
            ) -> Self {
                Self {
                    $( $field: {
                        let entry = $crate::table::Entry::new(stringify!($field), $default, $kind)
                            $(.$column($value))*;
                        fields.value(entry, given, report)
                    }, )*
                    $( $other: $other_default, )*
                }
            }
        }
    };
}

use section;
