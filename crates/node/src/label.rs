//! Values of labels.

/// Defines an enum whose variants have names, by which metrics and logs show them. `ALL` has them in their order, so that a
/// variant is the index of its counter.
macro_rules! labels {
    ($(#[$meta:meta])* pub enum $label:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $label {
            $($(#[$doc])* $variant,)+
        }

        impl $label {
            /// All variants, in the order of their counters.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the value of the label.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

pub(crate) use labels;
