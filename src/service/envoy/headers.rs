//! Headers that tell the client how it stands.

use crate::limiter::envoy::RateLimitAnswer;

/// Their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderNames {
    /// How many requests pass per unit.
    pub limit: Box<str>,
    /// How many more pass now.
    pub remaining: Box<str>,
    /// In how many seconds all pass again.
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

/// They tell of the last limit that denies the request by itself or, where none does, of the one with the
/// least left. Where no limit counts there is nothing to tell.
pub(super) fn of<'n>(
    names: &'n HeaderNames,
    answer: &RateLimitAnswer<'_>,
) -> impl Iterator<Item = (&'n str, u64)> {
    let counted = || answer.statuses.iter().filter(|status| status.limit().is_some());
    let denying = counted().rfind(|told| told.is_over() && !told.quota_mode);
    let told = denying.or_else(|| counted().min_by_key(|told| told.remaining));
    let headers = told.map(|told| {
        let limit = told.limit().map_or(0, |limit| u64::from(limit.requests_per_unit()));
        [
            (&*names.limit, limit),
            (&*names.remaining, u64::from(told.remaining)),
            (&*names.reset, told.until_reset_s.unwrap_or(0)),
        ]
    });
    headers.into_iter().flatten()
}
