//! Costs by name, as the command line, files of calls and logs have them.

use weir_node::limiter::NamedCost;

/// A cost by its name in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CostByName {
    /// The name.
    pub name: String,
    /// The units to charge.
    pub cost: u64,
    /// The least that may be granted instead of all.
    pub at_least: Option<u64>,
}

impl CostByName {
    /// The same as a part of a question.
    pub(super) fn named(&self) -> NamedCost<'_> {
        NamedCost { name: &self.name, cost: self.cost, at_least: self.at_least }
    }
}

/// Parses `4096`, or `4096,256`: the units, and the least that may be granted instead.
pub fn read_units(text: &str) -> Result<(u64, Option<u64>), String> {
    let number = |text: &str| {
        let digits = text.replace('_', "");
        digits
            .parse::<u64>()
            .map_err(|_| format!("`{text}` is no number: write 3, output=4096 or output=4096,256"))
    };
    Ok(match text.split_once(',') {
        Some((most, least)) => (number(most)?, Some(number(least)?)),
        None => (number(text)?, None),
    })
}
