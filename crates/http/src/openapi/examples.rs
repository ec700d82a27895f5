//! Examples of answers.

use serde_json::{Value, json};

/// Returns the examples of a method's answers, if there are any.
pub(super) fn answers(method: &str) -> Option<Value> {
    if method != "ShouldAllow" {
        return None;
    }
    let limit = |remaining: &str, retry_after: &str| {
        let mut limit = json!({ "name": "each", "limit": "2", "remaining": remaining });
        if !retry_after.is_empty() {
            limit["retryAfter"] = json!(retry_after);
        }
        limit
    };
    Some(json!({
        "allowed": { "value": {
            "allowed": true, "limit": "2", "remaining": "1", "resetAfter": "1800s", "reason": "REASON_OK",
            "limits": [limit("1", "")],
        } },
        "limited": { "value": {
            "allowed": false, "limit": "2", "remaining": "0", "retryAfter": "1800s", "resetAfter": "3600s",
            "reason": "REASON_LIMITED", "deniedBy": ["each"], "limits": [limit("0", "1800s")],
            "message": "Please try again later.",
        } },
        "never": { "value": {
            "allowed": false, "limit": "2", "remaining": "2", "reason": "REASON_NEVER", "deniedBy": ["each"],
        } },
        "banned": { "value": {
            "allowed": false, "retryAfter": "600s", "reason": "REASON_BANNED", "deniedBy": ["each"],
        } },
        "degraded": { "value": { "allowed": true, "reason": "REASON_STORE_FAILURE", "degraded": true } },
    }))
}
