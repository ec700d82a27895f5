//! Why a decision failed alone, from what its script says.

use redis::Value;

use crate::StoreError;
use crate::redis::reply::text;

/// What the reason begins with where an id is known with another cost; the cost follows.
const OTHER_COST: &str = "other cost: ";

/// An error of one key within the script: the key's own fault, or the server's.
pub(super) fn read_reason(reason: &Value) -> Result<StoreError, StoreError> {
    let reason = text(reason)?;
    if let Some(known) = reason.strip_prefix(OTHER_COST).and_then(|cost| cost.parse().ok()) {
        return Ok(StoreError::OtherCost(known));
    }
    // Redis 6.2 and 7.0 say in these words that a right is missing.
    let is_right = reason.contains("The user executing the script");
    let code = reason.split(' ').next().unwrap_or_default();
    let is_servers = matches!(code, "OOM" | "READONLY" | "MISCONF" | "NOREPLICAS" | "NOPERM" | "MASTERDOWN");
    Ok(if is_right || is_servers { StoreError::Refused } else { StoreError::Unreadable }(reason.into()))
}
