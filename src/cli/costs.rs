//! `--cost`: a number, or a cost by its name.

use std::collections::HashMap;

use weir_proto::v1::Cost;

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
    let number = |text: &str| {
        let digits = text.replace('_', "");
        digits
            .parse::<u64>()
            .map_err(|_| format!("`{text}` is no number: write 3, output=4096 or output=4096,256"))
    };
    let Some((name, costs)) = text.split_once('=') else { return number(text).map(CostArg::Plain) };
    let (most, least) = match costs.split_once(',') {
        Some((most, least)) => (number(most)?, Some(number(least)?)),
        None => (number(costs)?, None),
    };
    Ok(CostArg::Named(name.to_owned(), Cost { cost: most, at_least: least }))
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

/// What was used, by name.
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
        for wrong in ["", "-1", "output=", "output=1,", "output=1,2,3", "output"] {
            assert!(cost(wrong).is_err(), "{wrong}");
        }
    }
}
