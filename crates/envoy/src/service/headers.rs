//! Headers with the client's limit, what remains, and the time until it resets.

use crate::rules::RateLimit;
use weir_node::service::http_headers;

use crate::limiter::{DescriptorStatus, RateLimitAnswer};
use crate::settings::EnvoyConfig;

/// Headers of the last limit that denies the request by itself or, if none does, of the one with the least remaining.
/// There are none without a limit.
pub(super) fn limit_headers<'n>(
    config: &'n EnvoyConfig,
    answer: &RateLimitAnswer<'_>,
) -> impl Iterator<Item = (&'n str, u64)> {
    let headers = described(answer).map(|status| {
        let limit = status.limit().map_or(0, |limit| u64::from(limit.requests_per_unit()));
        [
            (&*config.limit_header, limit),
            (&*config.remaining_header, u64::from(status.remaining)),
            (&*config.reset_header, status.until_reset_s.unwrap_or(0)),
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
