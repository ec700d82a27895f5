//! Cards of the page `/ui` that features register: a table of this node, from the metrics of the feature.

use crate::access::Rights;

/// A card: a row for each value of a label.
#[derive(Debug)]
pub struct CardSpec {
    /// The heading.
    pub title: &'static str,
    /// A line below the heading.
    pub about: &'static str,
    /// The label of the metrics whose values are the rows, and the heading of the first column.
    pub label: &'static str,
    /// The other columns. The first one's metric says which rows there are.
    pub columns: &'static [CardColumn],
    /// True if a caller may see the row of a value.
    pub may_show: fn(Rights<'_>, &str) -> bool,
}

/// A column of a card.
#[derive(Debug)]
pub struct CardColumn {
    /// The heading.
    pub heading: &'static str,
    /// The name of the metric.
    pub metric: &'static str,
    /// The form of its values.
    pub form: CardForm,
    /// True if narrow screens leave it out.
    pub is_wide: bool,
}

/// The form of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardForm {
    /// A number.
    Count,
    /// A time in seconds.
    Seconds,
}

impl CardForm {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Seconds => "seconds",
        }
    }
}
