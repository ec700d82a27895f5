//! Kinds of values: parsing, formatting and bounds. Numbers with bounds are in `numbers.rs`, texts in `texts.rs`.

use std::path::PathBuf;

use super::super::errors::{MistakeReport, Position};
use super::super::fields::MAX_PATH;
use super::super::key_share::KeyShare;
use super::super::values::{Digits, Scalar, boolean, choice, digits, quote, text_within};
use super::value_kind::ValueKind;

/// The kind of a setting's value.
pub(crate) trait SettingKind {
    /// The type of the value.
    type Value;
    /// The placeholder of the value in `--help`.
    const NAME: &'static str;

    /// Parses it.
    fn read(&self, scalar: Scalar<'_>) -> Result<Self::Value, String>;

    /// Formats it as a file would; `None` if there is no value.
    fn write(&self, value: &Self::Value) -> Option<String>;

    /// Returns its type in the schema.
    fn values(&self) -> ValueKind;

    /// Returns the bounds, as formatted in the reference.
    fn bounds(&self) -> String {
        self.values().bounds()
    }

    /// Returns the reference's text in place of a default.
    fn unset(&self) -> &'static str {
        ""
    }

    /// Resolves a value of the file, which may be relative to the file.
    fn in_file(&self, value: Self::Value, _at: Position, _report: &MistakeReport) -> Self::Value {
        value
    }
}

/// A choice among words.
pub(crate) struct Words<T: 'static>(pub(crate) &'static [(&'static str, T)]);
/// A path. In the file it is relative to the file's directory.
pub(crate) struct FilePath;
/// An optional value, and the reference's text for its absence.
pub(crate) struct Optional<K>(pub(crate) K, pub(crate) &'static str);

/// Generates kinds that have no parameters: the type of the value, and the parts of [`SettingKind`].
macro_rules! kinds {
    ($(
        $(#[$meta:meta])*
        $kind:ident: $value:ty {
            name: $name:literal,
            read: $read:expr,
            write: $write:expr,
            values: $values:expr,
            $( bounds: $bounds:expr, )?
        }
    )*) => { $(
        $(#[$meta])*
        pub(crate) struct $kind;

        impl $crate::table::SettingKind for $kind {
            type Value = $value;
            const NAME: &'static str = $name;

            fn read(&self, scalar: $crate::values::Scalar<'_>) -> Result<$value, String> {
                $read(scalar)
            }

            fn write(&self, value: &$value) -> Option<String> {
                $write(value)
            }

            fn values(&self) -> $crate::table::ValueKind {
                $values
            }

            $( fn bounds(&self) -> String {
                $bounds
            } )?
        }
    )* };
}

pub(super) use kinds;

kinds! {
    /// True or false.
    Boolean: bool {
        name: "BOOL",
        read: boolean,
        write: text_of,
        values: ValueKind::Boolean,
    }
    /// A fraction of 1.
    Ratio: f32 {
        name: "PART",
        read: ratio,
        write: text_of,
        values: ValueKind::Part,
    }
    /// A share of all keys.
    PartOfKeys: KeyShare {
        name: "PART",
        read: part_of_keys,
        write: text_of,
        values: ValueKind::Part,
    }
}

/// Formats a value by its `Display`.
pub(super) fn text_of(value: &impl ToString) -> Option<String> {
    Some(value.to_string())
}

fn ratio(scalar: Scalar<'_>) -> Result<f32, String> {
    let (whole, fraction) = scalar.text.split_once('.').unwrap_or((scalar.text, "0"));
    let plain = |text: &str| matches!(digits(text), Digits::Number(_));
    let ratio = scalar.text.parse::<f32>().ok().filter(|_| plain(whole) && plain(fraction));
    match ratio {
        Some(ratio) if ratio <= 1.0 => Ok(ratio),
        _ => Err(format!("{} is not a part of one, from 0 to 1, such as 0.8", quote(scalar.text))),
    }
}

fn part_of_keys(scalar: Scalar<'_>) -> Result<KeyShare, String> {
    let (whole, fraction) = scalar.text.split_once('.').unwrap_or((scalar.text, "0"));
    let plain = |text: &str| matches!(digits(text), Digits::Number(_)) && !text.contains('_');
    let part = scalar.text.parse::<f64>().ok();
    let part = part.filter(|_| plain(whole) && plain(fraction) && !scalar.quoted);
    part.and_then(KeyShare::new)
        .ok_or_else(|| format!("{} is not a part of one, from 0 to 1, such as 0.01", quote(scalar.text)))
}

impl<T: Copy + PartialEq> SettingKind for Words<T> {
    type Value = T;
    const NAME: &'static str = "WORD";

    fn read(&self, scalar: Scalar<'_>) -> Result<T, String> {
        choice(scalar, self.0)
    }

    fn write(&self, value: &T) -> Option<String> {
        self.0.iter().find(|(_, meaning)| meaning == value).map(|(word, _)| (*word).to_owned())
    }

    fn values(&self) -> ValueKind {
        ValueKind::Words(self.0.iter().map(|(word, _)| *word).collect())
    }
}

impl SettingKind for FilePath {
    type Value = PathBuf;
    const NAME: &'static str = "PATH";

    fn read(&self, scalar: Scalar<'_>) -> Result<PathBuf, String> {
        text_within(scalar, MAX_PATH).map(PathBuf::from)
    }

    fn write(&self, value: &PathBuf) -> Option<String> {
        Some(value.display().to_string())
    }

    fn values(&self) -> ValueKind {
        ValueKind::Text(1, MAX_PATH)
    }

    fn bounds(&self) -> String {
        format!("path of {}", self.values().bounds())
    }

    fn in_file(&self, value: PathBuf, at: Position, report: &MistakeReport) -> PathBuf {
        report.resolve(at, &value)
    }
}

impl<K: SettingKind> SettingKind for Optional<K> {
    type Value = Option<K::Value>;
    const NAME: &'static str = K::NAME;

    fn read(&self, scalar: Scalar<'_>) -> Result<Self::Value, String> {
        self.0.read(scalar).map(Some)
    }

    fn write(&self, value: &Self::Value) -> Option<String> {
        value.as_ref().and_then(|value| self.0.write(value))
    }

    fn values(&self) -> ValueKind {
        self.0.values()
    }

    fn bounds(&self) -> String {
        self.0.bounds()
    }

    fn unset(&self) -> &'static str {
        self.1
    }

    fn in_file(&self, value: Self::Value, at: Position, report: &MistakeReport) -> Self::Value {
        value.map(|value| self.0.in_file(value, at, report))
    }
}
