//! Resolves a descriptor into a rule of the files, a limit of the request's own, or nothing.

use std::sync::Arc;

use crate::rules::{Domain, RateLimit, Rule};
use smallvec::SmallVec;
use weir_node::limiter::{InvalidField, LimiterError};

use super::given::unit;
use super::{DescriptorQuestion, EnvoyLimiter};

/// Resolution of one descriptor.
#[derive(Debug, Clone)]
pub(super) enum FoundLimit<'a> {
    /// Nothing applies: it passes, and is not counted.
    Nothing,
    /// A rule of the files matched.
    Rule(&'a Arc<Rule>),
    /// An override in the request.
    Given(Arc<RateLimit>),
}

impl<'a> FoundLimit<'a> {
    /// Resolves a descriptor of these entries, and of this limit of its own. In an unknown domain nothing applies, not even an override.
    pub(super) fn resolve(
        envoy: &EnvoyLimiter,
        domain: Option<&'a Domain>,
        given: Option<(u32, i32)>,
        entries: &[(&str, &str)],
    ) -> Result<Self, LimiterError> {
        let given = given.filter(|_| envoy.config.overrides_in_request);
        let Some((requests_per_unit, number)) = given else {
            let matched = domain.and_then(|domain| domain.find(entries.iter().copied()));
            return Ok(matched.map_or(Self::Nothing, Self::Rule));
        };
        // An invalid override is rejected in any domain, so that the caller's mistake shows.
        let unit = unit(number)?;
        let Some(domain) = domain else { return Ok(Self::Nothing) };
        let limit = envoy.given.limit(domain.owner(), requests_per_unit, unit, envoy.config.count_rejected);
        let limit = limit.map_err(|invalid| InvalidField {
            field: "descriptors.limit.requests_per_unit",
            value: invalid.value,
            bound: invalid.bound,
        })?;
        Ok(Self::Given(limit))
    }

    /// The limit to charge, if any.
    pub(super) fn limit(&self) -> Option<&RateLimit> {
        match self {
            Self::Nothing => None,
            Self::Rule(rule) => rule.limit.as_ref(),
            Self::Given(limit) => Some(limit),
        }
    }

    /// The rule of the files.
    pub(super) fn rule(&self) -> Option<&'a Arc<Rule>> {
        match self {
            Self::Rule(rule) => Some(*rule),
            _ => None,
        }
    }

    /// Name of the rule in errors and metrics.
    pub(super) fn path(&self) -> String {
        self.rule().map_or_else(|| "override".to_owned(), |rule| rule.path())
    }
}

/// Drops the rules that another rule of the same request replaces by name. An unlimited rule stays: it counts nothing
/// that could be replaced, and keeps its status.
pub(super) fn replace(questions: &mut [DescriptorQuestion<'_>]) {
    fn rules<'q, 'a>(all: &'q [DescriptorQuestion<'a>]) -> impl Iterator<Item = &'a Arc<Rule>> + use<'q, 'a> {
        all.iter().filter_map(|question| question.found.rule())
    }
    if rules(questions).all(|rule| rule.replaces.is_empty()) {
        return;
    }
    let replaced = |question: &DescriptorQuestion<'_>| {
        let can_be = |rule: &&Arc<Rule>| !rule.name.is_empty() && rule.limit.is_some();
        let Some(rule) = question.found.rule().filter(can_be) else { return false };
        rules(questions).any(|other| other.replaces.contains(&rule.name))
    };
    let kept: SmallVec<[bool; 8]> = questions.iter().map(|question| !replaced(question)).collect();
    for (question, _) in questions.iter_mut().zip(kept).filter(|(_, kept)| !kept) {
        question.found = FoundLimit::Nothing;
    }
}
