//! Doubles that travel to a script, by name.

use std::io::Write;

/// A struct of doubles that travel in the order of its fields. The script that reads them has the same names.
macro_rules! doubles {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub(in crate::redis) struct $name {
            $($(#[$field_doc])* pub(in crate::redis) $field: f64,)+
        }

        impl $name {
            /// The names, in their order.
            #[cfg(test)]
            pub(in crate::redis) const NAMES: &[&str] = &[$(stringify!($field)),+];

            /// Appends them.
            pub(in crate::redis) fn put(&self, out: &mut impl std::io::Write) {
                $(crate::redis::doubles::put(out, self.$field);)+
            }
        }
    };
}

pub(super) use doubles;

/// Appends a double. What is written to takes all of it: an argument of a command.
pub(super) fn put(out: &mut impl Write, number: f64) {
    let _ = out.write_all(&number.to_le_bytes());
}
