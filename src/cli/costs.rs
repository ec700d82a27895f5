//! `--cost`: a number, or a cost by its name.

use std::collections::HashMap;

use weir_proto::v1::Cost;

use crate::simulation::{CostByName, read_units};

/// One `--cost`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CostArg {
    /// Of limits without `cost:`.
    Plain(u64),
    /// Of the limits that name it.
    Named(String, Cost),
}

/// Parses `3`, `output=4096` or `output=4096,256`.
pub(super) fn cost(text: &str) -> Result<CostArg, String> {
    let Some((name, costs)) = text.split_once('=') else {
        return match read_units(text)? {
            (cost, None) => Ok(CostArg::Plain(cost)),
            _ => Err(format!("`{text}` has no name: write output={text}")),
        };
    };
    let (cost, at_least) = read_units(costs)?;
    Ok(CostArg::Named(name.to_owned(), Cost { cost, at_least }))
}

/// The cost without a name, the last of several.
pub(super) fn plain(costs: &[CostArg]) -> Option<u64> {
    costs.iter().rev().find_map(|cost| if let CostArg::Plain(cost) = cost { Some(*cost) } else { None })
}

/// The costs by name.
pub(super) fn named(costs: &[CostArg]) -> HashMap<String, Cost> {
    let named = costs.iter().filter_map(|cost| match cost {
        CostArg::Named(name, cost) => Some((name.clone(), *cost)),
        CostArg::Plain(_) => None,
    });
    named.collect()
}

/// The costs by name of simulated calls, each name once: the last of several.
pub(super) fn simulated(costs: &[CostArg]) -> Vec<CostByName> {
    let mut named: Vec<_> = named(costs)
        .into_iter()
        .map(|(name, Cost { cost, at_least })| CostByName { name, cost, at_least })
        .collect();
    named.sort_by(|one, next| one.name.cmp(&next.name));
    named
}

/// Returns the used units by name.
pub(super) fn used(costs: &[CostArg]) -> HashMap<String, u64> {
    named(costs).into_iter().map(|(name, cost)| (name, cost.cost)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_a_number_or_has_a_name() {
        let named = |cost, at_least| Ok(CostArg::Named("output".to_owned(), Cost { cost, at_least }));
        assert_eq!(cost("1_000"), Ok(CostArg::Plain(1_000)));
        assert_eq!(cost("output=900"), named(900, None));
        assert_eq!(cost("output=4_096,256"), named(4_096, Some(256)));
        for wrong in ["", "-1", "1,2", "output=", "output=1,", "output=1,2,3", "output"] {
            assert!(cost(wrong).is_err(), "{wrong}");
        }
    }
}
