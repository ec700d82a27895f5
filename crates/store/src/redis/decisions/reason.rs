//! Maps the script's reason for one failed decision to an error.

use redis::Value;

use crate::StoreError;
use crate::redis::reply::text;

/// The prefix of the reason for an id that is known with another cost. The known cost follows.
const OTHER_COST: &str = "other cost: ";

/// Maps an error of one key within the script: unreadable data under the key, or a refusal by the server.
pub(super) fn read_reason(reason: &Value) -> Result<StoreError, StoreError> {
    let reason = text(reason)?;
    if let Some(known) = reason.strip_prefix(OTHER_COST).and_then(|cost| cost.parse().ok()) {
        return Ok(StoreError::OtherCost(known));
    }
    // Redis 6.2 and 7.0 report a missing ACL right in these words.
    let is_right = reason.contains("The user executing the script");
    let code = reason.split(' ').next().unwrap_or_default();
    let is_servers = matches!(code, "OOM" | "READONLY" | "MISCONF" | "NOREPLICAS" | "NOPERM" | "MASTERDOWN");
    Ok(if is_right || is_servers { StoreError::Refused } else { StoreError::Unreadable }(reason.into()))
}
