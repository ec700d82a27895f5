//! Inline limits: strategies of one limit inside requests. They count by resource and consumer.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use super::{FailurePolicy, Field, Limit, Owner, Scope, Strategy, StrategyError, check_name};
use crate::algorithm::{Algorithm, Engine};

/// Name of all inline limits together in metrics, and as an owner of keys.
pub const INLINE: &str = "inline";

/// The longest name of an inline limit, in bytes.
pub const MAX_INLINE_NAME: usize = 64;

/// Settings that all inline limits of a process share.
#[derive(Debug, Clone)]
pub struct InlineLimits {
    owner: Arc<Owner>,
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self { owner: Arc::new(Owner::of_strategy(INLINE)) }
    }
}

impl InlineLimits {
    /// Owner of the keys of all inline limits.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// The strategy of an inline limit. Two with one name and engine share their keys, even if their numbers differ;
    /// unless they are `separate`, which makes the numbers a part of the keys.
    pub fn strategy(
        &self,
        name: &str,
        algorithm: Algorithm,
        on_store_failure: FailurePolicy,
        separate: bool,
    ) -> Result<Strategy, StrategyError> {
        check_name(name)?;
        let name = match separate {
            true => Cow::Owned(format!("{name}={}", numbers(&algorithm))),
            false => Cow::Borrowed(name),
        };
        let scope = Scope::new(&[Field::Resource, Field::Consumer]);
        let limit = Limit { name: limit_name(&name).into(), scope, algorithm };
        // No configured strategy has a `=` in its name, so the keys are separate from theirs.
        let strategy =
            Strategy::unchecked(&format!("{INLINE}={name}"), vec![limit], false, on_store_failure)?;
        let strategy = if separate { strategy } else { strategy.mixing_numbers() };
        Ok(strategy.of_family(family(&name)).owned_by(&self.owner))
    }
}

/// The name of the inline limit that decides under this strategy, if it is one, and true if it is separate from those
/// with other numbers.
pub fn inline_name(strategy: &str) -> Option<(&str, bool)> {
    let name = strategy.strip_prefix(INLINE).and_then(|rest| rest.strip_prefix('='))?;
    Some((limit_name(name), name.contains('=')))
}

/// The name without the numbers of a separate limit.
fn limit_name(name: &str) -> &str {
    name.split_once('=').map_or(name, |(name, _)| name)
}

/// Fingerprint that distinguishes two limits of one engine, in hexadecimal.
fn numbers(algorithm: &Algorithm) -> String {
    let [one, other] = match algorithm.engine() {
        Engine::Bucket(bucket) => [bucket.drain, algorithm.weight()],
        Engine::Window(window) => [window.span, 0],
        Engine::Sliding(sliding) => [sliding.span, 0],
        Engine::Log(log) => [log.span, 0],
        Engine::Slots(slots) => [slots.width(), slots.frame()],
        // Inline limits have no other engines.
        Engine::Interval(_) | Engine::WarmUp(_) => [0, 0],
    };
    format!("{:x}-{one:x}-{other:x}", algorithm.limit())
}

/// A number derived from the name. If two names share it, their decisions only wait for one another.
fn family(name: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Rate;
    use weir_units::Micros;

    #[test]
    fn numbers_are_no_part_of_what_a_limit_is() {
        let limits = InlineLimits::default();
        let bucket = |burst, separate| {
            let rate = Rate { count: 1, period: Micros::from_secs(1) };
            let algorithm = Algorithm::bucket(burst, rate).unwrap();
            limits.strategy("api", algorithm, FailurePolicy::Error, separate).unwrap()
        };
        let (one, other) = (bucket(1, false), bucket(2, false));
        assert_eq!(one.family(), other.family());
        assert_eq!(one.identity(0), other.identity(0));
        assert_ne!(one.id(), other.id());
        assert!(check_name(one.name()).is_err(), "no configured strategy has this name");
        assert_eq!(inline_name(one.name()), Some(("api", false)));
    }

    #[test]
    fn a_separate_limit_is_what_its_numbers_are() {
        let limits = InlineLimits::default();
        let of = |burst, seconds, separate| {
            let rate = Rate { count: 1, period: Micros::from_secs(seconds) };
            let algorithm = Algorithm::bucket(burst, rate).unwrap();
            limits.strategy("api", algorithm, FailurePolicy::Error, separate).unwrap()
        };
        assert_eq!(of(1, 1, true).identity(0), of(1, 1, true).identity(0));
        for other in [of(2, 1, true), of(1, 2, true), of(1, 1, false)] {
            assert_ne!(of(1, 1, true).identity(0), other.identity(0));
        }
        assert_eq!(inline_name(of(1, 1, true).name()), Some(("api", true)));
        assert_eq!(&*of(1, 1, true).limits()[0].name, "api");
    }
}
