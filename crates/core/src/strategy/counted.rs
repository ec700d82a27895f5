//! The strategies of a configuration that nodes count on their own.

use std::sync::Arc;

use super::live_overrides::LiveOverrides;
use super::{Overrides, Rules, Strategy};

impl Rules {
    /// All strategies that nodes count on their own, with their overrides and as shadows. Only such a strategy has
    /// overrides that they count, and the others may have many.
    pub fn approximate(&self) -> Vec<Arc<Strategy>> {
        let own = self.strategies.iter().zip(self.exceptions.iter().map(|own| &own.overrides));
        let shadows = self.shadows.iter().flatten().map(|shadow| (&shadow.strategy, &shadow.overrides));
        let counted = own.chain(shadows).filter(|(strategy, _)| strategy.approximate().is_some());
        let mut all: Vec<Arc<Strategy>> = Vec::new();
        for (strategy, overrides) in counted {
            all.push(Arc::clone(strategy));
            each_override(overrides, &mut |one| all.push(Arc::clone(one)));
        }
        all
    }
}

fn each_override(overrides: &Overrides, add: &mut impl FnMut(&Arc<Strategy>)) {
    overrides.iter().for_each(|(_, _, strategy)| add(strategy));
    overrides.first().into_iter().flat_map(LiveOverrides::iter).for_each(|(_, _, strategy)| add(strategy));
}
