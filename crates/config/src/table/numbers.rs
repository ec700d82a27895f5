//! Kinds that are numbers with bounds: counts, sizes and durations.

use std::fmt::Display;

use weir_units::Micros;

use super::super::quantities::{duration_within, size, written_duration, written_size};
use super::super::values::{Scalar, integer, within};
use super::SettingKind;
use super::value_kind::ValueKind;

/// A whole number, with inclusive bounds.
pub(crate) struct Count<T>(pub(crate) T, pub(crate) T);
/// A number of bytes, with inclusive bounds.
pub(crate) struct ByteSize<T>(pub(crate) T, pub(crate) T);
/// A number of bytes with a lower bound only.
pub(crate) struct ByteSizeFrom(pub(crate) usize);
/// A duration, with inclusive bounds.
pub(crate) struct Span(pub(crate) Micros, pub(crate) Micros);

/// The types of whole numbers.
pub(crate) trait WholeNumber: Copy + Display + TryFrom<u64> {
    /// Widens it to `u64`.
    fn wide(self) -> u64;
}

impl WholeNumber for u16 {
    fn wide(self) -> u64 {
        self.into()
    }
}

impl WholeNumber for u32 {
    fn wide(self) -> u64 {
        self.into()
    }
}

impl WholeNumber for u64 {
    fn wide(self) -> u64 {
        self
    }
}

impl WholeNumber for usize {
    fn wide(self) -> u64 {
        self as u64
    }
}

/// Returns `number` if it is within the bounds, in the type of the bounds.
fn bounded<T: WholeNumber>(number: u64, min: T, max: T) -> Result<T, String> {
    let number = within(number, min.wide(), max.wide())?;
    T::try_from(number).map_err(|_| format!("{number} is too large: at most {max}"))
}

impl<T: WholeNumber> SettingKind for Count<T> {
    type Value = T;
    const NAME: &'static str = "COUNT";

    fn read(&self, scalar: Scalar<'_>) -> Result<T, String> {
        bounded(integer(scalar)?, self.0, self.1)
    }

    fn write(&self, value: &T) -> Option<String> {
        Some(value.to_string())
    }

    fn values(&self) -> ValueKind {
        ValueKind::Count(self.0.wide(), self.1.wide())
    }
}

impl<T: WholeNumber> SettingKind for ByteSize<T> {
    type Value = T;
    const NAME: &'static str = "SIZE";

    fn read(&self, scalar: Scalar<'_>) -> Result<T, String> {
        bounded(size(scalar)? as u64, self.0, self.1)
    }

    fn write(&self, value: &T) -> Option<String> {
        Some(written_size(value.wide()))
    }

    fn values(&self) -> ValueKind {
        let narrow = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        ValueKind::Size(narrow(self.0.wide()), narrow(self.1.wide()))
    }
}

impl SettingKind for ByteSizeFrom {
    type Value = usize;
    const NAME: &'static str = "SIZE";

    fn read(&self, scalar: Scalar<'_>) -> Result<usize, String> {
        let bytes = size(scalar)?;
        if bytes < self.0 {
            let least = written_size(self.0 as u64);
            return Err(format!("{bytes} bytes is out of bounds: it must be at least {least}"));
        }
        Ok(bytes)
    }

    fn write(&self, value: &usize) -> Option<String> {
        Some(written_size(*value as u64))
    }

    fn values(&self) -> ValueKind {
        ValueKind::Size(self.0, usize::MAX)
    }
}

impl SettingKind for Span {
    type Value = Micros;
    const NAME: &'static str = "SPAN";

    fn read(&self, scalar: Scalar<'_>) -> Result<Micros, String> {
        duration_within(scalar, self.0, self.1)
    }

    fn write(&self, value: &Micros) -> Option<String> {
        Some(written_duration(*value))
    }

    fn values(&self) -> ValueKind {
        ValueKind::Span(self.0, self.1)
    }
}
