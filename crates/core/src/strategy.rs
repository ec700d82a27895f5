//! Strategies, their scopes, and the tag that keeps a decision in one slot.

mod access;
mod amended;
mod approximate;
mod attributes;
mod banning;
mod bans;
mod changes;
mod costed;
mod counted;
mod edited;
mod error;
mod failure_policy;
mod generation;
mod identity;
mod inline;
mod live_overrides;
mod local;
mod overrides;
mod owner;
mod patterns;
mod permits;
mod prefix;
mod rates;
mod reload;
mod rules;
mod scope;
mod shadows;
mod shared_patterns;
mod tag;
mod tiers;
mod unreachable;

use std::sync::Arc;

pub use access::{Access, Listed, Listing};
pub use amended::{AccessEntry, RuleChanges};
pub use approximate::{
    ApproximateNumbers, ApproximateRule, MAX_SYNC, MIN_APPROXIMATE_WINDOW, MIN_SYNC, NoApproximate,
};
pub use attributes::{Attributes, Needed, is_attribute_name};
pub use bans::{BanError, BanTerms, LimitBan, MAX_BAN_AFTER};
pub use changes::{BeforeAfter, LimitChange, ResourceChange, StrategyChange};
pub use edited::RuleEdit;
pub use error::{StrategyError, Unknown};
pub use failure_policy::{FailurePolicy, LocalPolicy, WhenLocalFull};
pub use identity::StrategyId;
pub use inline::{INLINE, InlineLimits, MAX_INLINE_NAME, inline_name};
pub use local::{LocalError, LocalStrategy};
pub use overrides::{Applied, Override, OverrideError, Overrides};
pub use owner::Owner;
pub use patterns::{Pattern, Patterns};
pub use permits::{
    AdaptiveRule, AimdRule, ConcurrencyError, ConcurrencyNumbers, ConcurrencyRule, ControllerRule,
    Gradient2Rule, LONGEST_TTL, LimitSource, MAX_ADAPTIVE_LIMIT, MAX_LEASES, MAX_PARTITIONS, Partition,
    Partitions, ProbeRule, SHORTEST_RTT, SamplingRule, VegasRule,
};
pub(crate) use prefix::write_sized;
pub use rates::{LimitMarks, RateLimits, StrategyRule};
pub use rules::{Resolved, ResolvedShadow, Resource, Resources, Rules};
pub use scope::{Field, MAX_ATTRIBUTES, Scope};
pub use shadows::{MAX_SHADOWS, Shadow, ShadowLimit};
pub use tag::Tag;

use crate::algorithm::{Algorithm, MAX_LIMITS};
use weir_units::Micros;

/// Default bound of a reservation's wait.
pub const MAX_RESERVATION: Micros = Micros::from_secs(60);

/// Largest configurable bound of a reservation's wait.
pub const LONGEST_RESERVATION: Micros = Micros::from_secs(3600);

/// The longest name that a strategy or a limit may have, in bytes.
pub const MAX_NAME: usize = 128;

/// Name of the only limit of a concurrency strategy, in keys and messages.
pub const CONCURRENCY: &str = "concurrency";

/// A named rule, and how its keys are built.
#[derive(Debug, Clone)]
pub struct Strategy {
    id: StrategyId,
    /// Shared with the overrides made of it.
    name: Arc<str>,
    /// The name in keys: that above, and the generation if there is one.
    key_name: Arc<str>,
    generation: u64,
    /// The limits whose numbers are an override's own, a bit for each.
    overridden: u8,
    /// The limits whose `near_limit` is an override's own.
    overridden_near: u8,
    family: usize,
    /// Shared with the overrides too.
    owner: Arc<Owner>,
    rule: StrategyRule,
    tag: Tag,
    /// Every field that a limit counts by.
    fields: Scope,
    shares_counters: bool,
    mixes_numbers: bool,
    tag_is_whole: bool,
    /// True if it has what few have, see [`Strategy::is_special`].
    is_special: bool,
    needed: Box<[Needed]>,
    on_store_failure: FailurePolicy,
    /// The strategy of a node by itself, see [`Strategy::with_local`].
    local: Option<Arc<LocalStrategy>>,
    /// The rule by which nodes count on their own, see [`Strategy::with_approximate`].
    approximate: Option<Arc<ApproximateRule>>,
}

/// One limit of a strategy.
#[derive(Debug, Clone)]
pub struct Limit {
    /// The limit's name, unique within its strategy.
    pub name: Box<str>,
    /// The fields of a request in this limit's key.
    pub scope: Scope,
    /// The algorithm.
    pub algorithm: Algorithm,
}

impl Strategy {
    /// A strategy of `limits`. Scopes without a common field need `single_slot`, which gives up spreading over a
    /// cluster.
    pub fn new(
        name: &str,
        limits: Vec<Limit>,
        single_slot: bool,
        on_store_failure: FailurePolicy,
    ) -> Result<Self, StrategyError> {
        check_name(name)?;
        Self::unchecked(name, limits, single_slot, on_store_failure)
    }

    /// A strategy without the check of its name, for names that no configuration can have.
    fn unchecked(
        name: &str,
        limits: Vec<Limit>,
        single_slot: bool,
        on_store_failure: FailurePolicy,
    ) -> Result<Self, StrategyError> {
        match limits.len() {
            0 => return Err(StrategyError::NoLimits),
            count if count > MAX_LIMITS => return Err(StrategyError::TooManyLimits(count)),
            _ if limits.iter().all(|limit| limit.algorithm.is_shadow()) => {
                return Err(StrategyError::NothingEnforced);
            }
            _ => {}
        }
        for (index, limit) in limits.iter().enumerate() {
            check_name(&limit.name)?;
            if limits.iter().take(index).any(|earlier| earlier.name == limit.name) {
                return Err(StrategyError::DuplicateLimit(limit.name.to_string()));
            }
        }
        let needed = attributes::needed(limits.iter().map(|limit| (&*limit.name, &limit.scope)))?;
        let tag = Tag::new(name, &limits, single_slot)?;
        let fields: Vec<Field> = limits.iter().flat_map(|limit| limit.scope.fields()).cloned().collect();
        let fields = Scope::new(&fields);
        let shares_counters = limits.iter().any(|limit| limit.scope != fields);
        let rates = RateLimits::new(name, limits);
        let (is_special, rule) = (rates.is_special(), StrategyRule::Rates(rates));
        let strategy = Self::with_rule(name, rule, (tag, fields), needed, on_store_failure);
        Ok(Self { shares_counters, is_special, ..strategy })
    }

    /// A concurrency strategy, which limits permits and has no rate limits.
    pub fn of_leases(
        name: &str,
        scope: Scope,
        rule: ConcurrencyRule,
        on_store_failure: FailurePolicy,
    ) -> Result<Self, StrategyError> {
        check_name(name)?;
        let needed = attributes::needed(std::iter::once((CONCURRENCY, &scope)))?;
        let tag = match scope.fields() {
            [] => Tag::Strategy(name.into()),
            _ => Tag::Fields(scope.clone()),
        };
        let rule = StrategyRule::Permits(Box::new(rule));
        Ok(Self::with_rule(name, rule, (tag, scope), needed, on_store_failure))
    }

    fn with_rule(
        name: &str,
        rule: StrategyRule,
        (tag, fields): (Tag, Scope),
        needed: Box<[Needed]>,
        on_store_failure: FailurePolicy,
    ) -> Self {
        let (id, name) = (StrategyId::next(), Arc::<str>::from(name));
        Self {
            key_name: Arc::clone(&name),
            generation: 0,
            overridden: 0,
            overridden_near: 0,
            family: id.number() as usize,
            owner: Arc::new(Owner::of_strategy(&name)),
            shares_counters: false,
            mixes_numbers: false,
            tag_is_whole: matches!(&tag, Tag::Fields(scope) if *scope == fields),
            is_special: false,
            id,
            rule,
            name,
            tag,
            fields,
            needed,
            on_store_failure,
            local: None,
            approximate: None,
        }
    }

    /// Returns the rule: rates or permits.
    #[inline]
    pub fn rule(&self) -> &StrategyRule {
        &self.rule
    }

    /// The rule of permits, if it limits these.
    pub fn permits(&self) -> Option<&ConcurrencyRule> {
        match &self.rule {
            StrategyRule::Permits(rule) => Some(rule),
            StrategyRule::Rates(_) => None,
        }
    }

    #[inline]
    fn rates(&self) -> Option<&RateLimits> {
        match &self.rule {
            StrategyRule::Rates(rates) => Some(rates),
            StrategyRule::Permits(_) => None,
        }
    }

    /// Id that is unique among all strategies of the process.
    pub fn id(&self) -> StrategyId {
        self.id
    }

    /// Every field that its limits count by.
    pub fn fields(&self) -> &Scope {
        &self.fields
    }

    /// True if some limit counts by fewer fields than another, so that decisions with other keys share its counters.
    pub fn shares_counters(&self) -> bool {
        self.shares_counters
    }

    /// True if its counters may also be charged under other numbers: those of an override for some resources, or those
    /// that another request brings along.
    pub fn mixes_numbers(&self) -> bool {
        self.mixes_numbers
    }

    /// The strategy, with counters that are also charged under other numbers.
    #[must_use]
    pub(crate) fn mixing_numbers(mut self) -> Self {
        self.mixes_numbers = true;
        self
    }

    /// True if the tag has every field that its limits count by, unless a routing group replaces one.
    pub fn tag_is_whole(&self) -> bool {
        self.tag_is_whole
    }

    /// The name callers use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A number shared by a strategy and its overrides, which alone have keys in common; unique in the process
    /// otherwise.
    pub fn family(&self) -> usize {
        self.family
    }

    /// The name in keys: [`Strategy::name`], followed by the generation if there is one.
    #[inline]
    pub fn key_name(&self) -> &str {
        &self.key_name
    }

    fn of_family(self, family: usize) -> Self {
        Self { family, ..self }
    }

    /// Changes each algorithm; the result is another set of limits, without a local strategy, and not counted
    /// on the nodes.
    #[must_use]
    pub fn with_algorithms(mut self, change: impl Fn(Algorithm) -> Algorithm) -> Self {
        self.change_limits(|limit| Some(change(limit.algorithm)));
        Self { id: StrategyId::next(), local: None, approximate: None, ..self }
    }

    /// Sets the owner of its keys.
    #[must_use]
    pub fn owned_by(mut self, owner: &Arc<Owner>) -> Self {
        self.owner = Arc::clone(owner);
        self
    }

    /// Owner of its keys: the strategy with its overrides, unless [`Strategy::owned_by`] set another.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Hash tag of all keys of one decision.
    pub fn tag(&self) -> &Tag {
        &self.tag
    }

    /// The failure policy.
    pub fn on_store_failure(&self) -> FailurePolicy {
        self.on_store_failure
    }

    /// True if a request must name its consumer.
    pub fn names_consumer(&self) -> bool {
        self.fields.has(Field::Consumer)
    }

    /// The attributes that a request must carry, each with a limit that counts by it.
    pub fn needed_attributes(&self) -> &[Needed] {
        &self.needed
    }
}

/// Names stand in keys and metric labels, so they are kept plain.
pub fn check_name(name: &str) -> Result<(), StrategyError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
        return Err(StrategyError::Name(name.to_owned()));
    }
    Ok(())
}
