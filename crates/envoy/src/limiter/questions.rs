//! From a request to what the store is asked, or to why it is refused.

use smallvec::SmallVec;
use weir_core::algorithm::{Algorithm, Op};
use weir_core::envoy::{Domain, RateLimit};
use weir_node::limiter::{InvalidField, shown};

use super::{
    DescriptorAsk, DescriptorQuestion, EnvoyLimiter, FoundLimit, MAX_DESCRIPTORS, MAX_ENTRIES, MAX_TEXT,
    RateLimitAsk, RateLimitError, name, rule,
};
use crate::metrics::EnvoyEvent;

/// Everything that can be refused is refused here, before anything is charged.
pub(super) fn questions<'a>(
    envoy: &EnvoyLimiter,
    domain: Option<&'a Domain>,
    ask: &RateLimitAsk<'_>,
) -> Result<SmallVec<[DescriptorQuestion<'a>; 2]>, RateLimitError> {
    check(ask)?;
    if domain.is_none() {
        envoy.recorder.happened(EnvoyEvent::UnknownDomain);
    }
    let mut found: SmallVec<[FoundLimit<'a>; 2]> = SmallVec::new();
    for descriptor in &ask.descriptors {
        found.push(FoundLimit::of(envoy, domain, descriptor)?);
    }
    rule::replace(&mut found);
    let questions = found.into_iter().zip(&ask.descriptors).map(|(found, descriptor)| {
        let hits = descriptor.hits.unwrap_or(u64::from(ask.hits_addend.max(1)));
        let bills = found.limit().is_some_and(RateLimit::bills);
        let op = match descriptor {
            DescriptorAsk { refund: true, .. } => Op::Refund,
            DescriptorAsk { hits: Some(1..), .. } if bills => Op::Force,
            _ => Op::Charge,
        };
        let counts_rejected = || {
            found
                .limit()
                .is_some_and(|limit| limit.strategy().algorithms().iter().any(Algorithm::counts_denied))
        };
        if op == Op::Refund && counts_rejected() {
            return Err(RateLimitError::NoRefund(found.path().into()));
        }
        let name = match found.limit() {
            Some(_) => name::of(ask.domain, &descriptor.entries, found.matched()),
            None => String::new(),
        };
        Ok(DescriptorQuestion { found, name, op, hits, charged: hits })
    });
    questions.collect()
}

fn check(ask: &RateLimitAsk<'_>) -> Result<(), RateLimitError> {
    if ask.domain.is_empty() {
        return Err(RateLimitError::NoDomain);
    }
    if ask.descriptors.is_empty() {
        return Err(RateLimitError::NoDescriptors);
    }
    let too_many = |field, most: usize| {
        let (value, bound) = (format!("more than {most} entries"), format!("there may be at most {most}"));
        Err(RateLimitError::Invalid(InvalidField { field, value, bound }))
    };
    if ask.descriptors.len() > MAX_DESCRIPTORS {
        return too_many("descriptors", MAX_DESCRIPTORS);
    }
    check_length("domain", ask.domain)?;
    for DescriptorAsk { entries, .. } in &ask.descriptors {
        if entries.len() > MAX_ENTRIES {
            return too_many("descriptors.entries", MAX_ENTRIES);
        }
        for (key, value) in entries {
            check_length("descriptors.entries.key", key)?;
            check_length("descriptors.entries.value", value)?;
        }
    }
    Ok(())
}

fn check_length(field: &'static str, text: &str) -> Result<(), InvalidField> {
    if text.len() <= MAX_TEXT {
        return Ok(());
    }
    let bound = format!("it has {} bytes; at most {MAX_TEXT} fit", text.len());
    Err(InvalidField { field, value: format!("\"{}\"", shown(text)), bound })
}
