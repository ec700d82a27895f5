//! The rules of a configuration, compiled for one caller at a time.

use std::sync::Arc;

use weir_config::{AuthorizeRule, CallerPattern};

use super::caller_rights::CallerRights;
use super::compiled_rule::CompiledRule;
use super::names::CallerName;
use super::refusals::AccessMetrics;

#[derive(Debug)]
pub(super) struct AccessRules {
    /// Grows with each change.
    generation: u64,
    /// `None`: whoever has authenticated may do all but `control`.
    rules: Option<Vec<AuthorizeRule>>,
    metrics: Arc<AccessMetrics>,
}

impl AccessRules {
    pub(super) fn new(rules: Option<&[AuthorizeRule]>, metrics: Arc<AccessMetrics>) -> Self {
        Self { generation: 0, rules: rules.map(<[_]>::to_vec), metrics }
    }

    /// The next rules; `None` if these are the same.
    pub(super) fn next(&self, rules: Option<&[AuthorizeRule]>) -> Option<Self> {
        (self.rules.as_deref() != rules)
            .then(|| Self { generation: self.generation + 1, ..Self::new(rules, Arc::clone(&self.metrics)) })
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn rights_of(&self, name: &CallerName) -> Arc<CallerRights> {
        let rules = match &self.rules {
            None if name.is_anonymous() => Vec::new(),
            None => vec![CompiledRule::all_but_control()],
            Some(rules) => {
                let fits = |pattern: &CallerPattern| name.all().any(|name| pattern.matches(name));
                let own = rules.iter().filter(|rule| rule.callers.iter().any(fits));
                own.map(|rule| CompiledRule::new(rule, name)).collect()
            }
        };
        Arc::new(CallerRights::new(name.clone(), rules, Arc::clone(&self.metrics)))
    }
}
