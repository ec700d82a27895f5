//! Metadata of a rule, returned to Envoy with the answer.

/// A value of a descriptor's `metadata`.
#[derive(Debug, Clone, PartialEq)]
pub enum Metadata {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number. Envoy's own type for it is a double.
    Number(f64),
    /// A text.
    Text(Box<str>),
    /// A list.
    List(Vec<Metadata>),
    /// Values by name, in the order of the file.
    Map(Vec<(Box<str>, Metadata)>),
}
