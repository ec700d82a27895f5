//! Numeric codes in requests to scripts and in their replies. They have the same names in `lua/`.

/// Defines constants in a module of their own, because several scripts share some of the names.
#[macro_export]
macro_rules! codes {
    ($(#[$doc:meta])* $module:ident { $($name:ident = $number:literal,)+ }) => {
        $(#[$doc])*
        pub(crate) mod $module {
            $(pub(crate) const $name: u64 = $number;)+

            #[cfg(test)]
            pub(crate) const ALL: &[(&str, u64)] = &[$((stringify!($name), $number)),+];
        }
    };
}

pub(crate) use codes;
