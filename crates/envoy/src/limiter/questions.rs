//! From a request to what the store is asked, or to why it is refused.

use crate::rules::Domain;
use smallvec::SmallVec;
use weir_core::algorithm::{Algorithm, Op};
use weir_node::limiter::{InvalidField, LimiterError, shown};

use super::{
    DescriptorAsk, DescriptorQuestion, EnvoyLimiter, FoundLimit, MAX_DESCRIPTORS, MAX_ENTRIES, MAX_TEXT,
    RateLimitAsk, name, rule,
};
use crate::metrics::EnvoyEvent;

/// The questions of a request, one for each descriptor.
pub(super) type Questions<'a> = SmallVec<[DescriptorQuestion<'a>; 2]>;

/// Appends the questions. Everything that can be refused is refused here, before anything is charged.
pub(super) fn pose<'a>(
    questions: &mut Questions<'a>,
    envoy: &EnvoyLimiter,
    domain: Option<&'a Domain>,
    ask: &RateLimitAsk<'_>,
) -> Result<(), LimiterError> {
    check(ask)?;
    if domain.is_none() {
        envoy.recorder.happened(EnvoyEvent::UnknownDomain);
    }
    for descriptor in &ask.descriptors {
        let found = FoundLimit::resolve(envoy, domain, descriptor.limit, ask.entries_of(descriptor))?;
        let hits = descriptor.hits.unwrap_or(u64::from(ask.hits_addend.max(1)));
        questions.push(DescriptorQuestion {
            found,
            name: String::new(),
            op: Op::Charge,
            hits,
            charged: hits,
        });
    }
    rule::replace(questions);
    for (question, descriptor) in questions.iter_mut().zip(&ask.descriptors) {
        let Some(limit) = question.found.limit() else { continue };
        question.op = match descriptor {
            DescriptorAsk { refund: true, .. } => Op::Refund,
            DescriptorAsk { hits: Some(1..), .. } if limit.bills() => Op::Force,
            _ => Op::Charge,
        };
        if question.op == Op::Refund && limit.strategy().algorithms().iter().any(Algorithm::counts_denied) {
            let rule = question.found.path();
            let why = format!("rule `{rule}` counts rejected hits, so hits on it cannot be given back");
            return Err(LimiterError::Unsupported(why));
        }
        question.name = name::counter_name(ask.domain, ask.entries_of(descriptor), question.found.rule());
    }
    Ok(())
}

fn check(ask: &RateLimitAsk<'_>) -> Result<(), LimiterError> {
    if ask.domain.is_empty() {
        let what = "rate limit domain must not be empty";
        return Err(LimiterError::Incomplete { field: "domain", what });
    }
    if ask.descriptors.is_empty() {
        let what = "rate limit descriptor list must not be empty";
        return Err(LimiterError::Incomplete { field: "descriptors", what });
    }
    let too_many = |field, most: usize| {
        let (value, bound) = (format!("more than {most} entries"), format!("there may be at most {most}"));
        Err(LimiterError::Invalid(InvalidField { field, value, bound }))
    };
    if ask.descriptors.len() > MAX_DESCRIPTORS {
        return too_many("descriptors", MAX_DESCRIPTORS);
    }
    check_length("domain", ask.domain)?;
    for descriptor in &ask.descriptors {
        if descriptor.entries.len() > MAX_ENTRIES {
            return too_many("descriptors.entries", MAX_ENTRIES);
        }
        for (key, value) in ask.entries_of(descriptor) {
            check_length("descriptors.entries.key", key)?;
            check_length("descriptors.entries.value", value)?;
        }
    }
    Ok(())
}

#[inline]
fn check_length(field: &'static str, text: &str) -> Result<(), InvalidField> {
    if text.len() <= MAX_TEXT { Ok(()) } else { Err(too_long(field, text)) }
}

#[cold]
fn too_long(field: &'static str, text: &str) -> InvalidField {
    let bound = format!("it has {} bytes; at most {MAX_TEXT} fit", text.len());
    InvalidField { field, value: format!("\"{}\"", shown(text)), bound }
}
