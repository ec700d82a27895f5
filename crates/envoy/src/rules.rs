//! Envoy's rate limit descriptors: which configured rule a descriptor matches.
//!
//! Everything here is compiled once, when the files are read, and never changes: [`Domains`] is one set
//! of files, and a reload is another one. Matching hashes each key and value once per entry and allocates
//! nothing, with 10 rules or 10,000.
//!
//! The rules of matching are those of the reference service: entries are walked in order, one level of
//! the tree each. At each level the exact text goes before the first pattern of the file, and that before
//! the key alone. A request may say exactly what a pattern says; then this pattern is the exact text. The choice is final, and a rule counts only where the last entry ends on it. Unlike there,
//! a key and its value are never joined into one text, so `a_b` and `a` with `b` are different.

mod affixes;
mod cidr;
mod counted;
mod descriptor;
mod domain;
mod glob;
mod level;
mod limit;
mod metadata;
mod regexes;
mod rule;
mod shared;
mod sibling;
mod texts;
mod values;

pub use cidr::{Cidr, InvalidCidr};
pub use descriptor::{Descriptor, Draft, Matcher};
pub use domain::{Domain, Domains};
pub use glob::Glob;
pub use level::{How, Step};
pub use limit::{Kind, RateLimit, STRATEGY, Unit};
pub use metadata::Metadata;
pub use regexes::{InvalidRegex, MAX_REGEX, check_regex};
pub use rule::{Rule, RuleEntry, rule_element};
pub use shared::SharedParts;
