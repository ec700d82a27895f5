//! Rules that nodes count on their own.

use std::collections::HashMap;
use std::sync::Arc;

use super::Domains;
use weir_core::strategy::Strategy;

impl Domains {
    /// Strategies that nodes count on their own. All rules with the same bound share the places of the nodes, so there is
    /// one of each bound: that which is pushed most often.
    #[must_use]
    pub fn approximate(&self) -> Vec<Arc<Strategy>> {
        let mut all: Vec<Arc<Strategy>> = Vec::new();
        let mut places = HashMap::new();
        for strategy in self.rules().iter().filter_map(|rule| Some(rule.limit.as_ref()?.strategy())) {
            let Some(rule) = strategy.approximate() else { continue };
            let place = *places.entry(rule.bound).or_insert(all.len());
            match all.get_mut(place) {
                None => all.push(Arc::clone(strategy)),
                Some(other) if other.approximate().is_some_and(|other| rule.sync < other.sync) => {
                    *other = Arc::clone(strategy);
                }
                Some(_) => {}
            }
        }
        all
    }
}
