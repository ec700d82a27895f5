//! All strategies, the default strategies of resources, and the exceptions of consumers.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::access::{self, Access, Listing};
use super::patterns::NameTable;
use super::{
    Applied, INLINE, InlineLimits, Listed, Overrides, Owner, Pattern, Patterns, Shadow, ShadowLimit,
    Strategy, Unknown,
};
use crate::algorithm::EngineKind;
use crate::near::KnownNames;

/// Configuration of the resources that one pattern matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Index of the strategy in [`Rules`].
    pub strategy: usize,
    /// Resources of one routing group share a shard.
    pub group: Option<Box<str>>,
}

/// Default strategies of resources.
pub type Resources = Patterns<Resource>;

/// The configured strategies, and the default ones of resources.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub(super) strategies: Vec<Arc<Strategy>>,
    pub(super) by_name: Arc<NameTable<usize>>,
    /// The names, for what looks like one.
    names: Arc<KnownNames>,
    pub(super) resources: Arc<Resources>,
    pub(super) access: Access,
    /// One per strategy, in the same order.
    pub(super) exceptions: Vec<Exceptions>,
    pub(super) shadows: Vec<Vec<Shadow>>,
    pub(super) shadow_limits: Vec<Vec<ShadowLimit>>,
    pub(super) has_shadows: bool,
    pub(super) engines: BTreeSet<EngineKind>,
    pub(super) inline: Option<InlineLimits>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Exceptions {
    pub(super) access: Access,
    pub(super) overrides: Overrides,
}

impl Rules {
    /// The rules of a configuration. `resources` count strategies in the order given here.
    pub fn new(strategies: Vec<Strategy>, resources: Resources) -> Self {
        let by_name: NameTable<usize> =
            strategies.iter().enumerate().map(|(index, s)| (s.name().into(), index)).collect();
        let names: KnownNames = strategies.iter().map(Strategy::name).collect();
        let exceptions = strategies.iter().map(|_| Exceptions::default()).collect();
        let engines = strategies.iter().flat_map(engines_of).collect();
        let strategies = strategies.into_iter().map(Arc::new).collect();
        Self {
            strategies,
            by_name: Arc::new(by_name),
            names: Arc::new(names),
            resources: Arc::new(resources),
            exceptions,
            engines,
            ..Self::default()
        }
    }

    /// The access lists for all strategies.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Sets the access lists: one for all strategies, and one for each in the order of the strategies.
    #[must_use]
    pub fn with_access(mut self, all: Access, own: impl IntoIterator<Item = Access>) -> Self {
        self.access = all;
        for (exceptions, access) in self.exceptions.iter_mut().zip(own) {
            exceptions.access = access;
        }
        self
    }

    /// True if any strategy has a shadow, or a limit in shadow mode.
    #[inline]
    pub fn has_shadows(&self) -> bool {
        self.has_shadows
    }

    /// The shadows of strategy number `live`.
    pub fn shadows(&self, live: usize) -> &[Shadow] {
        self.shadows.get(live).map_or(&[], Vec::as_slice)
    }

    /// The limits of strategy number `live` that are in shadow mode.
    pub fn shadow_limits(&self, live: usize) -> &[ShadowLimit] {
        self.shadow_limits.get(live).map_or(&[], Vec::as_slice)
    }

    /// Label pairs of all shadows, in the order of their numbers: the live strategy, and the shadow.
    pub fn shadow_names(&self) -> impl Iterator<Item = [&str; 2]> {
        let shadows = self.strategies.iter().zip(&self.shadows);
        let shadows = shadows.flat_map(|(live, all)| all.iter().map(|shadow| [live.name(), shadow.name()]));
        let limits = self.strategies.iter().zip(&self.shadow_limits);
        shadows.chain(limits.flat_map(|(live, all)| all.iter().map(|limit| [live.name(), &*limit.label])))
    }

    /// The shadow's strategy for `consumer`, or the list that applies.
    pub fn shadow_for<'a>(
        &'a self,
        shadow: &'a Shadow,
        resource: &str,
        consumer: &str,
    ) -> ResolvedShadow<'a> {
        let own = self.exceptions.get(shadow.index).map(|one| &one.access);
        let listed = access::listing(&self.access, own, consumer).map(|listing| listing.listed);
        let applied = shadow.overrides.find(consumer, resource);
        ResolvedShadow { strategy: applied.map_or(&shadow.strategy, |one| one.strategy), listed }
    }

    /// Allows inline limits.
    #[must_use]
    pub fn with_inline_limits(mut self) -> Self {
        self.engines.extend([EngineKind::Bucket, EngineKind::Window, EngineKind::Log, EngineKind::Sliding]);
        self.inline = Some(InlineLimits::default());
        self
    }

    /// Settings of inline limits; `None` if they are off.
    pub fn inline_limits(&self) -> Option<&InlineLimits> {
        self.inline.as_ref()
    }

    /// Owners of keys: strategies, shadows, and inline limits.
    pub fn owners(&self) -> impl Iterator<Item = &Owner> {
        let inline = self.inline.iter().map(|inline| &**inline.owner());
        let shadows = self.shadows.iter().flatten().map(|shadow| &shadow.strategy);
        self.strategies.iter().chain(shadows).map(|strategy| &**strategy.owner()).chain(inline)
    }

    /// Names under which decisions are counted, by [`Resolved::index`]: the strategies, then inline limits if they
    /// are allowed.
    pub fn counted_names(&self) -> impl Iterator<Item = &str> {
        let inline = self.inline.iter().map(|_| INLINE);
        self.strategies.iter().map(|strategy| strategy.name()).chain(inline)
    }

    /// All strategies, in the order of the configuration.
    pub fn strategies(&self) -> &[Arc<Strategy>] {
        &self.strategies
    }

    /// Engines of strategies and overrides.
    pub fn engines(&self) -> impl Iterator<Item = EngineKind> {
        self.engines.iter().copied()
    }

    /// True if a limit of any strategy bans its callers.
    pub fn has_bans(&self) -> bool {
        self.strategies.iter().any(|strategy| !strategy.bans().is_empty())
    }

    /// True if any strategy has leases.
    pub fn has_leases(&self) -> bool {
        self.strategies.iter().any(|strategy| strategy.permits().is_some())
    }

    /// The default strategies of resources.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Resolves the rule for `consumer`: deny lists, allow lists, overrides, then the strategy of the resource.
    pub fn resolve_for(
        &self,
        resource: &str,
        consumer: &str,
        strategy: &str,
    ) -> Result<Resolved<'_>, Unknown> {
        Ok(self.excepted(self.resolve(resource, strategy)?, resource, consumer))
    }

    /// Applies the exceptions for `consumer` to `resolved`, the rule of other consumers on the same resource.
    pub fn excepted<'a>(&'a self, resolved: Resolved<'a>, resource: &str, consumer: &str) -> Resolved<'a> {
        self.exception(&resolved, resource, consumer).unwrap_or(resolved)
    }

    /// Applies the exceptions for `consumer`. `None`: no consumer has any, so that `resolved` holds as it is.
    #[inline(always)]
    pub fn exception<'a>(
        &'a self,
        resolved: &Resolved<'a>,
        resource: &str,
        consumer: &str,
    ) -> Option<Resolved<'a>> {
        let exceptions = self.exceptions.get(resolved.index);
        if self.access.is_empty() && exceptions.is_none_or(Exceptions::is_empty) {
            return None;
        }
        Some(self.excepted_by(exceptions, resolved, resource, consumer))
    }

    fn excepted_by<'a>(
        &'a self,
        exceptions: Option<&'a Exceptions>,
        resolved: &Resolved<'a>,
        resource: &str,
        consumer: &str,
    ) -> Resolved<'a> {
        let listing = access::listing(&self.access, exceptions.map(|one| &one.access), consumer);
        let applied = exceptions.and_then(|one| one.overrides.find(consumer, resource));
        let strategy = applied.map_or(resolved.strategy, |one| one.strategy);
        Resolved { strategy, listing, applied, ..*resolved }
    }

    /// Resolves a request for consumers without an exception: strategy, index, and routing group of the resource. An
    /// explicit strategy may be used on any resource.
    pub fn resolve(&self, resource: &str, strategy: &str) -> Result<Resolved<'_>, Unknown> {
        let entry = self.resources.find(resource);
        let index = match (strategy.is_empty(), entry) {
            (false, _) => *self.by_name.get(strategy).ok_or_else(|| self.unknown_strategy(strategy))?,
            (true, Some((_, entry))) => entry.strategy,
            (true, None) => return Err(self.unknown_resource(resource)),
        };
        let strategy = self.strategies.get(index).ok_or_else(|| self.unknown_strategy(strategy))?;
        let group = entry.and_then(|(_, entry)| entry.group.as_deref());
        Ok(Resolved {
            index,
            strategy,
            group,
            pattern: entry.map(|(pattern, _)| pattern),
            listing: None,
            applied: None,
        })
    }

    /// Resolves the rule for `consumer` and an inline limit: lists of all strategies, then the limit.
    pub fn resolve_inline<'a>(
        &'a self,
        resource: &str,
        consumer: &str,
        strategy: &'a Arc<Strategy>,
    ) -> Resolved<'a> {
        let entry = self.resources.find(resource);
        let resolved = Resolved {
            index: self.strategies.len(),
            strategy,
            group: entry.and_then(|(_, entry)| entry.group.as_deref()),
            pattern: entry.map(|(pattern, _)| pattern),
            listing: None,
            applied: None,
        };
        self.excepted(resolved, resource, consumer)
    }

    fn unknown_strategy(&self, name: &str) -> Unknown {
        Unknown::Strategy { name: name.to_owned(), near: self.names.near(name) }
    }

    fn unknown_resource(&self, name: &str) -> Unknown {
        let near = self.strategies.iter().take(3).map(|strategy| strategy.name().to_owned()).collect();
        Unknown::Resource { name: name.to_owned(), near }
    }
}

impl Exceptions {
    #[inline]
    fn is_empty(&self) -> bool {
        self.access.is_empty() && self.overrides.is_empty()
    }
}

/// The strategy that decides a request.
#[derive(Debug, Clone, Copy)]
pub struct Resolved<'a> {
    /// Index in [`Rules::strategies`], also of tables with one entry per strategy.
    pub index: usize,
    /// The strategy, with the consumer's overrides.
    pub strategy: &'a Arc<Strategy>,
    /// The routing group of the request's resource.
    pub group: Option<&'a str>,
    /// The pattern that matches the resource.
    pub pattern: Option<Pattern<'a>>,
    /// The access list that applies; the limits are then not asked.
    pub listing: Option<Listing<'a>>,
    /// The override that applies.
    pub applied: Option<Applied<'a>>,
}

/// Resolution of a shadow.
#[derive(Debug, Clone, Copy)]
pub struct ResolvedShadow<'a> {
    /// The limits, with the consumer's overrides.
    pub strategy: &'a Arc<Strategy>,
    /// The access list that applies instead.
    pub listed: Option<Listed>,
}

pub(super) fn engines_of(strategy: &Strategy) -> impl Iterator<Item = EngineKind> {
    strategy.algorithms().iter().map(|limit| limit.engine().kind())
}
