//! Named doubles in the requests to scripts.

use std::io::Write;

/// Defines a struct of doubles that are sent in field order. The script that reads them uses the same names.
#[macro_export]
macro_rules! doubles {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub(crate) struct $name {
            $($(#[$field_doc])* pub(crate) $field: f64,)+
        }

        impl $name {
            /// The field names, in order.
            #[cfg(test)]
            pub(crate) const NAMES: &[&str] = &[$(stringify!($field)),+];

            pub(crate) fn put(&self, out: &mut impl std::io::Write) {
                $($crate::scripts::put_double(out, self.$field);)+
            }
        }
    };
}

pub(crate) use doubles;

/// Writes a double, little-endian. The writer is a command's buffer, which never fails.
pub fn put_double(out: &mut impl Write, number: f64) {
    let _ = out.write_all(&number.to_le_bytes());
}
