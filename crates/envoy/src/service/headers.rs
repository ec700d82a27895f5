//! Headers with the client's limit, what remains, and the time until it resets.

use crate::rules::RateLimit;
use weir_node::service::http_headers;

use crate::limiter::{DescriptorStatus, RateLimitAnswer};

/// Names of the headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderNames {
    /// Requests per unit.
    pub limit: Box<str>,
    /// Requests that still pass now.
    pub remaining: Box<str>,
    /// Seconds until the limit is full again.
    pub reset: Box<str>,
}

impl Default for HeaderNames {
    fn default() -> Self {
        Self {
            limit: "RateLimit-Limit".into(),
            remaining: "RateLimit-Remaining".into(),
            reset: "RateLimit-Reset".into(),
        }
    }
}

/// Headers of the last limit that denies the request by itself or, if none does, of the one with the least remaining.
/// There are none without a limit.
pub(super) fn limit_headers<'n>(
    names: &'n HeaderNames,
    answer: &RateLimitAnswer<'_>,
) -> impl Iterator<Item = (&'n str, u64)> {
    let headers = described(answer).map(|status| {
        let limit = status.limit().map_or(0, |limit| u64::from(limit.requests_per_unit()));
        [
            (&*names.limit, limit),
            (&*names.remaining, u64::from(status.remaining)),
            (&*names.reset, status.until_reset_s.unwrap_or(0)),
        ]
    });
    headers.into_iter().flatten()
}

/// The fields `RateLimit` and `RateLimit-Policy` for the same limit, as docs/http.md describes them.
pub(super) fn standard(answer: &RateLimitAnswer<'_>) -> Option<[(&'static str, String); 2]> {
    let status = described(answer)?;
    let limit = status.limit()?;
    let name = status.rule().map(|rule| &*rule.name).filter(|name| !name.is_empty());
    let (count, period) = (u64::from(limit.requests_per_unit()), period(limit));
    let name = name.unwrap_or(limit.unit().name());
    http_headers::fields(name, count, status.remaining.into(), period, status.until_reset_s)
}

fn period(limit: &RateLimit) -> u64 {
    limit.unit().seconds().saturating_mul(limit.unit_multiplier().into())
}

/// The descriptor that limits most.
fn described<'s, 'a>(answer: &'s RateLimitAnswer<'a>) -> Option<&'s DescriptorStatus<'a>> {
    let counted = || answer.statuses.iter().filter(|status| status.limit().is_some());
    let denying = counted().rfind(|status| status.is_over() && !status.quota_mode);
    denying.or_else(|| counted().min_by_key(|status| status.remaining))
}
