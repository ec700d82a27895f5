//! Overrides: other numbers for some consumers (tiers and single exceptions).
//!
//! An override is a whole strategy, ready to decide: the base with other algorithms for some of its limits. It has
//! the base's names, scopes and tag, and also its keys where the engine is the same: a consumer whose limit is raised
//! keeps its use. Another engine has another key, whose limit starts full.

use std::collections::HashMap;
use std::sync::Arc;

use super::live_overrides::LiveOverrides;
use super::{Field, LocalError, NoApproximate, Pattern, Patterns, Scope, Strategy, StrategyId, StrategyRule};
use crate::algorithm::Algorithm;
use crate::algorithm::budget::{BudgetLimit, NotHeld};

/// The overrides of one strategy.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Snapshots share it until the files say something else: there may be many. `None` if there are none.
    table: Option<Arc<Patterns<Patterns<Arc<Strategy>>>>>,
    /// Overrides of live control, which take precedence; `None` if there are none.
    first: Option<Arc<LiveOverrides>>,
}

/// One override.
#[derive(Debug, Clone)]
pub struct Override {
    /// A consumer, or a pattern of consumers.
    pub consumer: String,
    /// The resources that it is for; `*` means all of them.
    pub resource: String,
    /// The strategy that decides instead.
    pub strategy: Strategy,
}

/// The override that applies to a request.
#[derive(Debug, Clone, Copy)]
pub struct Applied<'a> {
    /// The pattern of consumers.
    pub consumer: Pattern<'a>,
    /// The pattern of resources.
    pub resource: Pattern<'a>,
    pub(super) strategy: &'a Arc<Strategy>,
}

/// Reason that a limit cannot be overridden.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// No limit has that name.
    #[error("strategy `{strategy}` has no limit of this name; it has {limits}")]
    Unknown {
        /// The strategy.
        strategy: Box<str>,
        /// The limits it has.
        limits: String,
    },
    /// The strategy has permits and no rate limits.
    #[error("strategy `{0}` limits concurrency; only rate limits can have other numbers for some consumers")]
    Concurrency(Box<str>),
    /// The limit has no part for nodes that decide by themselves.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// Nodes cannot count it on their own within the strategy's bound.
    #[error(transparent)]
    Approximate(#[from] NoApproximate),
    /// Calls of the strategy are held, and the algorithm cannot be.
    #[error(
        "limit `{limit}` cannot be held with this algorithm, because {why}; give it one that can be held"
    )]
    NotHeld {
        /// The limit.
        limit: Box<str>,
        /// Reason that not.
        why: NotHeld,
    },
    /// The counter is shared between consumers, for whom different numbers would apply.
    #[error(
        "limit `{limit}` of strategy `{strategy}` counts by {scope}, so that consumers share its counters; \
         only limits that count by consumer can differ between consumers"
    )]
    Shared {
        /// The strategy.
        strategy: Box<str>,
        /// The limit.
        limit: Box<str>,
        /// The scope.
        scope: String,
    },
}

impl Overrides {
    /// A table of `overrides`. Of two for the same consumers and resources the first applies; the configuration
    /// refuses them.
    pub fn new(overrides: impl IntoIterator<Item = Override>) -> Self {
        let mut by_consumer: HashMap<String, Vec<(String, Arc<Strategy>)>> = HashMap::new();
        for Override { consumer, resource, strategy } in overrides {
            by_consumer.entry(consumer).or_default().push((resource, Arc::new(strategy)));
        }
        let grouped = by_consumer.into_iter().map(|(consumer, all)| (consumer, Patterns::new(all)));
        let table = Patterns::new(grouped);
        Self { table: (!table.is_empty()).then(|| Arc::new(table)), first: None }
    }

    /// The table of overrides that take precedence.
    pub(super) fn live(overrides: impl IntoIterator<Item = Override>) -> LiveOverrides {
        let mut table = LiveOverrides::default();
        for Override { consumer, resource, strategy } in overrides {
            table.insert(&consumer, &resource, Arc::new(strategy));
        }
        table
    }

    /// Adds overrides that take precedence over all of these.
    #[must_use]
    pub(super) fn after(self, first: LiveOverrides) -> Self {
        Self { first: (!first.is_empty()).then(|| Arc::new(first)), ..self }
    }

    /// True if there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.is_none() && self.first.is_none()
    }

    /// The rest, without those that take precedence. It shares their table.
    pub(super) fn rest(&self) -> Self {
        Self { table: self.table.clone(), first: None }
    }

    pub(super) fn shares_with(&self, other: &Self) -> bool {
        match (&self.table, &other.table) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Returns the overrides that take precedence over the rest.
    pub(super) fn first(&self) -> Option<&LiveOverrides> {
        self.first.as_deref()
    }

    /// Adds an override that takes precedence, or removes it.
    pub(super) fn set_live(&mut self, consumer: &str, resource: &str, strategy: Option<Arc<Strategy>>) {
        let mut first = self.first.as_deref().cloned().unwrap_or_default();
        match strategy {
            Some(strategy) => first.insert(consumer, resource, strategy),
            None => first.remove(consumer, resource),
        }
        self.first = (!first.is_empty()).then(|| Arc::new(first));
    }

    /// All overrides but those that take precedence: consumer, resource, and the strategy that decides. In no order.
    pub fn iter(&self) -> impl Iterator<Item = (String, String, &Arc<Strategy>)> {
        self.table.iter().flat_map(|table| table.iter()).flat_map(|(consumer, resources)| {
            let entry = move |(resource, strategy): (Pattern<'_>, _)| {
                (consumer.to_string(), resource.to_string(), strategy)
            };
            resources.iter().map(entry)
        })
    }

    /// The override for `consumer` on `resource`: of those whose patterns match both, the most specific one, first by
    /// consumer and then by resource.
    pub fn find(&self, consumer: &str, resource: &str) -> Option<Applied<'_>> {
        let first = self.first.as_ref().and_then(|first| first.find(consumer, resource));
        let first = first.map(|(consumer, resource, strategy)| Applied { consumer, resource, strategy });
        first.or_else(|| {
            self.table.as_ref()?.matches(consumer).find_map(|(consumer, resources)| {
                let (resource, strategy) = resources.find(resource)?;
                Some(Applied { consumer, resource, strategy })
            })
        })
    }
}

impl OverrideError {
    /// The error for an unknown limit, where there are `limits`.
    pub fn unknown<'n>(strategy: &str, limits: impl Iterator<Item = &'n str>) -> Self {
        let limits: Vec<String> = limits.map(|limit| format!("`{limit}`")).collect();
        Self::Unknown { strategy: strategy.into(), limits: limits.join(", ") }
    }

    /// Checks if a limit that counts by `scope` can be overridden.
    pub fn check(strategy: &str, limit: &str, scope: &Scope) -> Result<(), Self> {
        match scope.has(Field::Consumer) {
            true => Ok(()),
            false => {
                Err(Self::Shared { strategy: strategy.into(), limit: limit.into(), scope: scope.to_string() })
            }
        }
    }
}

impl Strategy {
    /// Checks if limit `name` can be overridden.
    pub fn check_override(&self, name: &str) -> Result<(), OverrideError> {
        match self.limits().iter().find(|limit| *limit.name == *name) {
            Some(limit) => OverrideError::check(&self.name, name, &limit.scope),
            None if self.permits().is_some() => Err(OverrideError::Concurrency((&*self.name).into())),
            None => Err(OverrideError::unknown(&self.name, self.limits().iter().map(|limit| &*limit.name))),
        }
    }

    /// Replaces the algorithm of limit `name`, also in the local strategy and in the bound of nodes that count.
    pub fn override_limit(&mut self, name: &str, algorithm: Algorithm) -> Result<(), OverrideError> {
        let place = self.place_to_override(name)?;
        if let Some(costed) = self.costed()
            && let Some(limit) = costed.limits.get(place)
        {
            let changed = BudgetLimit { algorithm, ..*limit };
            let not_held = |why| OverrideError::NotHeld { limit: name.into(), why };
            changed.check_held(costed.hold.is_some()).map_err(not_held)?;
        }
        self.id = StrategyId::next();
        self.overridden |= 1_u8.checked_shl(place as u32).unwrap_or_default();
        self.change_limits(|limit| {
            let own = if limit.algorithm.is_shadow() { algorithm.in_shadow() } else { algorithm };
            (*limit.name == *name).then_some(own)
        });
        self.override_approximate()?;
        Ok(self.override_local(name)?)
    }

    /// Replaces `near_limit` of limit `name`, in percent.
    pub fn override_near(&mut self, name: &str, percent: u8) -> Result<(), OverrideError> {
        let place = self.place_to_override(name)?;
        self.id = StrategyId::next();
        self.overridden_near |= 1_u8.checked_shl(place as u32).unwrap_or_default();
        if let StrategyRule::Rates(rates) = &mut self.rule {
            rates.set_near(place, percent);
        }
        self.renew();
        Ok(())
    }

    fn place_to_override(&self, name: &str) -> Result<usize, OverrideError> {
        self.check_override(name)?;
        Ok(self.limits().iter().position(|limit| *limit.name == *name).unwrap_or_default())
    }
}
