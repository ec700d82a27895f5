//! The strategies of a configuration that nodes count on their own.

use std::sync::Arc;

use super::{Overrides, Rules, Strategy};

impl Rules {
    /// All strategies that nodes count on their own, with their overrides and as shadows.
    #[must_use]
    pub fn approximate(&self) -> Vec<Arc<Strategy>> {
        let mut all: Vec<Arc<Strategy>> = Vec::new();
        let mut add = |strategy: &Arc<Strategy>| {
            if strategy.approximate().is_some() {
                all.push(Arc::clone(strategy));
            }
        };
        self.strategies.iter().for_each(&mut add);
        self.exceptions.iter().for_each(|exceptions| each_override(&exceptions.overrides, &mut add));
        for shadow in self.shadows.iter().flatten() {
            add(&shadow.strategy);
            each_override(&shadow.overrides, &mut add);
        }
        all
    }
}

fn each_override(overrides: &Overrides, add: &mut impl FnMut(&Arc<Strategy>)) {
    overrides.iter().for_each(|(_, _, strategy)| add(strategy));
    overrides.first().into_iter().flat_map(Overrides::iter).for_each(|(_, _, strategy)| add(strategy));
}
