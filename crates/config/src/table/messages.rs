//! The table's section `messages`: the sentences on denial.

use super::texts::Sentence;
use super::{Applies, section};

section! {
    /// The sentences for people. `{wait}` is "4 seconds", "29m 21s" or "9d 13h", `{seconds}` the number of seconds,
    /// `{cost}` and `{limit}` the numbers of the call.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct DenialMessages {
        before: [],

        /// The text if waiting helps.
        pub limited: String = "Rate limit exceeded. Try again in {wait}".to_owned() => {
            kind: Sentence(&["wait", "seconds", "cost", "limit"]),
            applies: Applies::AtReload,
            more: "`{wait}` is \"4 seconds\", from two minutes on \"29m 21s\" or \"9d 13h\", rounded up; `{seconds}` is the \
                   number of seconds, `{cost}` and `{limit}` are the numbers of the call.",
        }
        /// The text if a lease is refused until others end.
        // The wait is not known.
        pub unknown: String = "All {limit} permits are in use. Try again when one is free".to_owned() => {
            kind: Sentence(&["cost", "limit"]),
            applies: Applies::AtReload,
            more: "It may contain `{cost}` and `{limit}`. If it is not set, a weight above 1 gets \"Fewer than {cost} of {limit} \
                   permits are free. Try again when more are\".",
        }
        /// The text if the cost is above a limit.
        // No wait helps here, so the sentence may not name one.
        pub never: String =
            "Rate limit exceeded. A cost of {cost} is above the limit of {limit} and can never pass".to_owned()
        => {
            kind: Sentence(&["cost", "limit"]),
            applies: Applies::AtReload,
            more: "It may contain `{cost}` and `{limit}`. If it is not set, a weight of permits gets \"A weight of {cost} is above \
                   the limit of {limit} permits and can never be granted\".",
        }

        after: [],
        others: {}
    }
}
