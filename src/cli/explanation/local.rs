//! The units that nodes admit alone while Redis cannot answer, in words with the numbers of the configuration.

use serde_json::{Value, json};
use weir_core::algorithm::{Algorithm, Engine, Grid};
use weir_core::strategy::{FailurePolicy, Limit, LocalPolicy, Strategy, WhenLocalFull};

use super::algorithm::{rate, span, text};

/// The causes that add to every bound.
const EXCEPTIONS: &str = "a loss of Redis's data adds one limit to a bound; a restart of a node within the window, and \
                          clocks that differ, add one smaller limit each";

/// Formats the policy as in the configuration.
pub(super) const fn when_full(policy: LocalPolicy) -> &'static str {
    match policy.when_full {
        WhenLocalFull::Allow => "allow",
        WhenLocalFull::Deny => "deny",
        WhenLocalFull::Error => "error",
    }
}

/// Returns the sentences that hold for all limits of a strategy; none if its nodes do not decide by themselves.
pub(in crate::cli) fn lines(strategy: &Strategy) -> Vec<String> {
    let FailurePolicy::Local(policy) = strategy.on_store_failure() else { return Vec::new() };
    let full = match policy.when_full {
        WhenLocalFull::Allow => "pass, and this has no bound",
        WhenLocalFull::Deny => "are denied",
        WhenLocalFull::Error => "get UNAVAILABLE",
    };
    vec![EXCEPTIONS.to_owned(), format!("new keys beyond store.redis.local_budget {full}")]
}

/// Returns for each limit the bound of what `n` nodes admit.
pub(in crate::cli) fn bounds(strategy: &Strategy) -> Vec<(&Limit, String)> {
    let Some(local) = strategy.local() else { return Vec::new() };
    let limits = strategy.limits().iter().zip(local.strategy().algorithms());
    limits.map(|(limit, part)| (limit, bound(&limit.algorithm, part))).collect()
}

/// Returns the bound of one limit.
pub(super) fn bound(whole: &Algorithm, part: &Algorithm) -> String {
    let (limit, own) = (whole.limit(), part.limit());
    let of = |times: u64, what: &str| {
        let own = own.saturating_mul(times);
        format!(
            "n nodes that decided admit at most n * {own} in {what} in which Redis decided nothing, and {limit} + n * {own} \
             in any other"
        )
    };
    match part.engine() {
        Engine::Window(window) if window.grid == Grid::Anchored => {
            format!("{}, because each node anchors its own windows", of(2, "a window"))
        }
        Engine::Window(_) => of(1, "a window"),
        Engine::Log(_) | Engine::Sliding(_) | Engine::Slots(_) => of(1, "any span of the window"),
        Engine::Interval(interval) => {
            let back = format!("{} every {}", interval.refill, span(interval.period));
            format!(
                "n nodes that decided admit at most n * {own}, and n * {back}, while Redis decides nothing; and {limit} with \
                 its own refills more where it does"
            )
        }
        Engine::Bucket(bucket) if part.is_uniform() => {
            format!("each node admits one call every {}", span(bucket.per_token.div_ceil(bucket.drain)))
        }
        Engine::Bucket(bucket) => {
            let rate = rate(bucket);
            let burst = own.max(part.capacity() / part.weight().max(1));
            let whole_burst = limit.max(whole.capacity() / whole.weight().max(1));
            format!(
                "n nodes that decided admit at most n * {burst} at once and then n * {rate} while Redis decides \
                 nothing; and {whole_burst} at once with the whole rate more where it does"
            )
        }
        // It has no part.
        Engine::WarmUp(_) => String::new(),
    }
}

/// Formats a part. Nobody can debit it, so its debt is left out.
pub(super) fn part_text(part: &Algorithm) -> String {
    text(&part.with_max_debt(Some(part.limit())))
}

/// Returns the policy, the limits of a node and their bounds.
pub(super) fn value(strategy: &Strategy) -> Option<Value> {
    let FailurePolicy::Local(policy) = strategy.on_store_failure() else { return None };
    let local = strategy.local()?;
    let parts = bounds(strategy).into_iter().zip(local.strategy().algorithms());
    let limits = parts.map(|((limit, bound), part)| {
        json!({ "name": &*limit.name, "algorithm": part_text(part), "limit": part.limit(), "bound": bound })
    });
    Some(json!({
        "share": policy.share.to_string(),
        "when_full": when_full(policy),
        "limits": limits.collect::<Vec<_>>(),
        "exceptions": lines(strategy),
    }))
}
