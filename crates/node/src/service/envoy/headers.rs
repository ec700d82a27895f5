//! Headers with the client's limit, what remains, and the time until it resets.

use crate::limiter::envoy::RateLimitAnswer;

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

/// They describe the last limit that denies the request by itself or, if none does, the one with the least remaining.
/// There are none without a limit.
pub(super) fn of<'n>(
    names: &'n HeaderNames,
    answer: &RateLimitAnswer<'_>,
) -> impl Iterator<Item = (&'n str, u64)> {
    let counted = || answer.statuses.iter().filter(|status| status.limit().is_some());
    let denying = counted().rfind(|status| status.is_over() && !status.quota_mode);
    let described = denying.or_else(|| counted().min_by_key(|status| status.remaining));
    let headers = described.map(|status| {
        let limit = status.limit().map_or(0, |limit| u64::from(limit.requests_per_unit()));
        [
            (&*names.limit, limit),
            (&*names.remaining, u64::from(status.remaining)),
            (&*names.reset, status.until_reset_s.unwrap_or(0)),
        ]
    });
    headers.into_iter().flatten()
}
