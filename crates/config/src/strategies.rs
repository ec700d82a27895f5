//! The `strategies` section: named lists of limits.

use std::collections::HashSet;

use weir_core::algorithm::{Algorithm, MAX_LIMITS};
use weir_core::strategy::{
    Access, BanTerms, INLINE, LONGEST_RESERVATION, Limit, LimitBan, MAX_RESERVATION, Scope, Strategy,
    StrategyError, Tag, check_name,
};
use weir_units::Micros;

use super::access::access;
use super::algorithms::algorithm;
use super::approximate::ApproximateKey;
use super::bans::BanKey;
use super::concurrency;
use super::costs::{HoldKey, LimitCostKeys};
use super::errors::MistakeReport;
use super::failure_policy::FailurePolicyKey;
use super::fields::{KeyedValue, Mapping, NamedNode};
use super::known_strategies::{Outline, Strategies};
use super::quantities::duration;
use super::scopes::scope;
use super::sections::SectionSpec;
use super::sentences::sentence;
use super::shadows::{ShadowList, shadows};
use super::values::{Scalar, boolean, choice};

/// The parts of the file besides strategies.
#[derive(Clone, Copy)]
pub(super) struct OtherSections<'s> {
    /// Sections of features that can stand in for strategies. Names that they reserve are for no strategy.
    pub(super) sufficing: &'s [&'static SectionSpec],
    /// Inline limits in requests.
    pub(super) inline: bool,
    /// States in this process.
    pub(super) memory: bool,
    /// A store that is divided into slots: a cluster.
    pub(super) slots: bool,
    /// Live control.
    pub(super) control: bool,
}

impl OtherSections<'static> {
    /// The sections of a strategy that live control reads again.
    pub(super) const LIVE: Self =
        Self { sufficing: &[], inline: false, memory: false, slots: false, control: true };
}

/// Reads the strategies. At least one is required, unless sections of features that suffice are configured.
pub(super) fn strategies(
    root: &mut Mapping<'_>,
    others: OtherSections<'_>,
    report: &mut MistakeReport,
) -> Strategies {
    const HELP: &str = "no strategy is configured; add a `strategies:` section, such as strategies: { mine: { \
                        limits: [{ name: each, per: [consumer], token_bucket: { rate: 10/s } }] } }";
    let Some(section) = root.take("strategies") else {
        let may_lack = !others.sufficing.is_empty();
        if root.is_whole() && !may_lack {
            root.report_here(report, HELP);
        }
        return Strategies { whole: may_lack && root.is_whole(), ..Strategies::default() };
    };
    let Some(entries) = section.entries(report) else { return Strategies::default() };
    if entries.is_empty() && !section.is_cut() {
        section.report(report, HELP);
    }
    let mut found = Strategies { whole: !section.is_cut(), ..Strategies::default() };
    let mut shadow_lists = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        found.names.insert(entry.name.to_owned(), index);
        let mut reserved = others.sufficing.iter().filter_map(|section| section.reserved);
        if let Some((_, reason)) = reserved.find(|(name, _)| entry.name == *name) {
            entry.report(report, reason);
        }
        if others.inline && entry.name == INLINE {
            let reason = "limits of requests (`server.inline_limits`) are counted under this name; call the \
                          strategy something else";
            entry.report(report, reason);
        }
        match strategy(entry, others, &mut shadow_lists, report) {
            Ok((strategy, access)) => {
                found.made_at.insert(entry.name.to_owned(), found.made.len());
                found.made.push(strategy);
                found.access.push(access);
            }
            Err(outline) => drop(found.mistaken.insert(entry.name.to_owned(), outline)),
        }
    }
    found.shadows = shadows(&shadow_lists, &found, report);
    found
}

/// Reads one strategy; or what is known of a mistaken one.
pub(super) fn strategy<'t>(
    entry: &KeyedValue<'t>,
    others: OtherSections<'_>,
    shadow_lists: &mut Vec<ShadowList<'t>>,
    report: &mut MistakeReport,
) -> Result<(Strategy, Access), Outline> {
    let name_fits = check_name(entry.name);
    if let Err(error) = &name_fits {
        entry.report(report, sentence(error));
    }
    let mut fields = Mapping::new(&entry.value, report);
    if let Some(permits) = fields.take_entry("concurrency") {
        return of_leases((entry, fields), others.memory, &permits, name_fits.is_ok(), report);
    }
    let limits = fields.require("limits", "list at least one limit", report);
    let policy = FailurePolicyKey::read(&mut fields, others.memory, report);
    let approximate = ApproximateKey::read(&mut fields, others.memory, report);
    if !others.memory && !policy.is_given() {
        report.note(entry.key_at, entry.value.path(), UNSAID);
    }
    let single_slot = fields.read("single_slot", report, boolean).unwrap_or(false);
    let max_reservation = fields.read("max_reservation", report, max_reservation).unwrap_or(MAX_RESERVATION);
    let access = access(fields.section("access", report), report);
    let shadow = fields.take("shadow");
    let hold = HoldKey::take(&mut fields, shadow.is_some(), report);
    shadow_lists.extend(shadow.map(|list| (entry.name, list)));
    fields.finish(report);

    let mut drafts = limits.map(|limits| self::limits(&limits, others.control, report)).unwrap_or_default();
    let outline = drafts.outline(entry.name);
    let whole = name_fits.is_ok() && drafts.whole && drafts.limits.iter().all(LimitDraft::is_whole);
    // Scopes are checked in combination even if an algorithm or a name is mistaken, with placeholders for those. If
    // there are too many limits, only the first ones are checked.
    let bans = drafts.bans();
    let (mut costs, mut places) = (Vec::new(), Vec::new());
    for draft in &mut drafts.limits {
        costs.push(std::mem::take(&mut draft.costs));
        places.push(draft.place.clone());
    }
    let filled = drafts.limits.into_iter().take(MAX_LIMITS).enumerate();
    let filled: Option<Vec<Limit>> = filled.map(|(i, draft)| draft.fill(i)).collect();
    let Some(filled) = filled.filter(|filled| !filled.is_empty()) else { return Err(outline) };
    let name = if name_fits.is_ok() { entry.name } else { "unnamed" };
    let single_slot = single_slot || lies_in_one_slot(name, &filled, entry, others, report);
    match Strategy::new(name, filled, single_slot, policy.policy) {
        Ok(strategy) if whole => {
            let strategy = strategy.with_max_reservation(max_reservation).with_bans(bans);
            let counted = approximate.checked(strategy, report);
            let costed = counted.and_then(|it| hold.checked(it, &costs, &places, report));
            costed.and_then(|it| policy.checked(it, report)).map(|it| (it, access)).ok_or(outline)
        }
        Ok(_) => Err(outline),
        Err(error) => {
            entry.report(report, sentence(&error));
            Err(outline)
        }
    }
}

/// The note of a check on a strategy on Redis that has no policy.
const UNSAID: &str =
    "has no `on_store_failure`: if Redis is away, its callers get UNAVAILABLE; write allow, deny or error";

/// True if limits without a common field may lie in one slot without being told, because the store has none.
fn lies_in_one_slot(
    name: &str,
    limits: &[Limit],
    entry: &KeyedValue<'_>,
    others: OtherSections<'_>,
    report: &mut MistakeReport,
) -> bool {
    let Err(StrategyError::NoCommonField(scopes)) = Tag::new(name, limits, false) else { return false };
    if !others.slots {
        report.note(
            entry.key_at,
            entry.value.path(),
            format!("the scopes {scopes} have no field in common; on Redis Cluster this strategy needs `single_slot: true`"),
        );
    }
    !others.slots
}

/// Reads a strategy with permits instead of rate limits.
fn of_leases(
    (entry, mut fields): (&KeyedValue<'_>, Mapping<'_>),
    in_memory: bool,
    permits: &KeyedValue<'_>,
    name_fits: bool,
    report: &mut MistakeReport,
) -> Result<(Strategy, Access), Outline> {
    for other in ["limits", "approximate", "single_slot", "max_reservation", "shadow", "hold"] {
        if let Some(other) = fields.take_entry(other) {
            let reason = format!(
                "cannot stand beside `concurrency`: such a strategy has one limit; remove `{}`",
                other.name
            );
            other.report(report, reason);
        }
    }
    let policy = FailurePolicyKey::read(&mut fields, in_memory, report);
    let access = access(fields.section("access", report), report);
    fields.finish(report);
    let outline = || Outline { name: entry.name.to_owned(), ..Outline::default() };
    let (scope, rule) = concurrency::concurrency(permits, report).ok_or_else(outline)?;
    if !name_fits {
        return Err(outline());
    }
    match Strategy::of_leases(entry.name, scope, rule, policy.policy) {
        Ok(strategy) => {
            policy.checked(strategy, report).map(|strategy| (strategy, access)).ok_or_else(outline)
        }
        Err(error) => {
            permits.value.report(report, sentence(&error));
            Err(outline())
        }
    }
}

fn max_reservation(scalar: Scalar<'_>) -> Result<Micros, String> {
    let given = duration(scalar)?;
    let long = || format!("{given} is out of bounds: it must be at most {LONGEST_RESERVATION}");
    if given > LONGEST_RESERVATION { Err(long()) } else { Ok(given) }
}

/// A limit as far as it could be read.
struct LimitDraft<'t> {
    place: NamedNode<'t>,
    costs: LimitCostKeys<'t>,
    name: Option<String>,
    scope: Option<Scope>,
    algorithm: Option<Algorithm>,
    ban: Option<BanTerms>,
}

impl LimitDraft<'_> {
    fn is_whole(&self) -> bool {
        self.name.is_some() && self.scope.is_some() && self.algorithm.is_some()
    }

    /// Fills missing parts with placeholders, except the scope.
    fn fill(self, index: usize) -> Option<Limit> {
        let name = self.name.unwrap_or_else(|| format!("limit/{index}/unnamed")).into();
        let algorithm = self.algorithm.or_else(|| Algorithm::uniform(Micros::from_secs(1)).ok())?;
        Some(Limit { name, scope: self.scope?, algorithm })
    }
}

/// The limits of a strategy as far as they could be read.
#[derive(Default)]
struct Drafts<'t> {
    limits: Vec<LimitDraft<'t>>,
    /// True if the list is complete and its length is valid.
    whole: bool,
    /// True if a syntax error truncated the list.
    cut: bool,
}

impl Drafts<'_> {
    /// The limits that ban their callers.
    fn bans(&self) -> Vec<LimitBan> {
        let all = self.limits.iter().enumerate();
        all.filter_map(|(limit, draft)| Some(LimitBan { limit, terms: draft.ban? })).collect()
    }

    fn outline(&self, strategy: &str) -> Outline {
        let named = self.limits.iter().filter_map(|draft| Some((draft.name.clone()?, draft.scope.clone())));
        let limits: Vec<_> = named.collect();
        // For a strategy without limits no override can be checked.
        let whole = !limits.is_empty() && limits.len() == self.limits.len() && !self.cut;
        Outline { name: strategy.to_owned(), limits, whole }
    }
}

/// Reads the limits of a strategy.
fn limits<'t>(value: &NamedNode<'t>, has_control: bool, report: &mut MistakeReport) -> Drafts<'t> {
    let Some(items) = value.items(report) else { return Drafts::default() };
    let count = match items.len() {
        0 if !value.is_cut() => Err(StrategyError::NoLimits),
        count if count > MAX_LIMITS => Err(StrategyError::TooManyLimits(count)),
        _ => Ok(()),
    };
    if let Err(error) = &count {
        value.report(report, sentence(error));
    }
    let mut names = HashSet::new();
    let limits: Vec<LimitDraft<'t>> =
        items.iter().map(|item| limit(item, &mut names, has_control, report)).collect();
    Drafts { limits, whole: count.is_ok() && !value.is_cut(), cut: value.is_cut() }
}

fn limit<'t>(
    value: &NamedNode<'t>,
    names: &mut HashSet<String>,
    has_control: bool,
    report: &mut MistakeReport,
) -> LimitDraft<'t> {
    let mut fields = Mapping::new(value, report);
    let name = fields.require("name", "denied callers see it in `denied_by`", report);
    let name = name.and_then(|name| name.read(report, |s| limit_name(s, names)));
    let per =
        fields.require("per", "say what has a counter of its own, such as [resource, consumer]", report);
    let scope = per.and_then(|per| scope(&per, report));
    let algorithm = algorithm(&mut fields, report);
    let modes = [("enforce", false), ("shadow", true)];
    let is_shadow = fields.read("mode", report, |s| choice(s, &modes)).unwrap_or(false);
    let ban = BanKey::take(&mut fields, has_control, report);
    let ban = ban.and_then(|ban| ban.checked(scope.as_ref(), is_shadow, report));
    let costs = LimitCostKeys::take(&mut fields, report);
    fields.finish(report);
    let algorithm = algorithm.map(|made| if is_shadow { made.in_shadow() } else { made });
    LimitDraft { place: value.clone(), costs, name, scope, algorithm, ban }
}

fn limit_name(scalar: Scalar<'_>, names: &mut HashSet<String>) -> Result<String, String> {
    check_name(scalar.text).map_err(|error| sentence(&error))?;
    let name = scalar.text.to_owned();
    if names.insert(name.clone()) { Ok(name) } else { Err(sentence(&StrategyError::DuplicateLimit(name))) }
}
