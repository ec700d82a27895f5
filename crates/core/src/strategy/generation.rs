//! Generations of a strategy: each has keys of its own, so that another one starts full.

use std::sync::Arc;

use super::{Owner, Strategy, StrategyId, StrategyRule};

/// Separator between a strategy's name and its generation in keys. No name has it.
const GENERATION: char = '@';

impl Strategy {
    /// The strategy under keys of another generation; 0 is none.
    #[must_use]
    pub fn with_generation(self, generation: u64) -> Self {
        let key_name = generation_name(&self.name, generation);
        let rule = match self.rule {
            StrategyRule::Rates(rates) => StrategyRule::Rates(rates.renamed(&key_name)),
            permits @ StrategyRule::Permits(_) => permits,
        };
        let owner = Arc::new(Owner::of_strategy(&self.name));
        let renamed = Self { id: StrategyId::next(), rule, key_name, generation, owner, local: None, ..self };
        // Its share has been checked.
        renamed.clone().with_local().unwrap_or(renamed)
    }
}

pub(super) fn generation_name(name: &Arc<str>, generation: u64) -> Arc<str> {
    match generation {
        0 => Arc::clone(name),
        generation => format!("{name}{GENERATION}{generation}").into(),
    }
}
