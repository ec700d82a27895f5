//! Refusals: one sentence for each kind, the same whether or not the thing exists. The log and the metric have the reason.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use weir_grpc::{CallRefusal, RefusalCode};
use weir_time::clock::monotonic;

use crate::audit::AuditLog;
use crate::label::labels;

/// Shortest time between two log lines of one reason.
const LOG_EVERY: Duration = Duration::from_secs(1);

labels! {
    /// Reason that a call was refused: the label of the metric, and the word in the log.
    #[repr(u8)]
    pub enum RefusalReason {
        /// No credential.
        Anonymous = "anonymous",
        /// The `authorization` header is not one `Bearer` credential.
        Malformed = "malformed",
        /// No line of the tokens file, no issuer or no key fits.
        Unknown = "unknown",
        /// The credential is not valid any more, or not yet.
        Expired = "expired",
        /// The signature of a JWT is wrong.
        Signature = "signature",
        /// The claims of a JWT do not fit.
        Claims = "claims",
        /// The header of a proxy names nobody.
        Forwarded = "forwarded",
        /// The certificate has no name that can be used.
        NoName = "no_name",
        /// Too many signatures had to be checked.
        Busy = "busy",
        /// The caller has no right to it.
        Rights = "rights",
    }
}

impl RefusalReason {
    pub(crate) const fn refusal(self) -> CallRefusal {
        let (code, message) = match self {
            Self::Rights => (RefusalCode::PermissionDenied, "the caller has no right to this"),
            Self::Busy => {
                (RefusalCode::Unavailable, "too many new credentials have to be checked; try again later")
            }
            _ => (RefusalCode::Unauthenticated, "the call needs a valid credential"),
        };
        CallRefusal { code, message }
    }
}

/// A refused question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the caller has no right to this")]
pub struct Refused(pub RefusalReason);

/// Counts of refusals.
#[derive(Debug, Default)]
pub struct AccessMetrics {
    audit: Option<AuditLog>,
    refused: [AtomicU64; RefusalReason::ALL.len()],
    logged: [Mutex<Option<Instant>>; RefusalReason::ALL.len()],
}

impl AccessMetrics {
    /// Creates counts whose refusals are in the audit too.
    pub fn audited(audit: AuditLog) -> Self {
        Self { audit: Some(audit), ..Self::default() }
    }

    /// Returns all reasons with their counts.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        RefusalReason::ALL.map(|reason| (reason.name(), self.refused(reason))).into()
    }

    /// Returns the number of refusals for a reason.
    pub fn refused(&self, reason: RefusalReason) -> u64 {
        self.refused[reason as usize].load(Relaxed)
    }

    /// Counts a refusal, and logs it unless the last line of its reason is not a second old. `caller` is its name or its
    /// address.
    #[cold]
    pub(crate) fn refuse(&self, reason: RefusalReason, caller: &str, what: &str) -> Refused {
        let count = self.refused[reason as usize].fetch_add(1, Relaxed) + 1;
        if let Some(mut logged) = self.logged[reason as usize].try_lock() {
            let now = monotonic();
            if logged.is_none_or(|last| now.saturating_duration_since(last) >= LOG_EVERY) {
                *logged = Some(now);
                tracing::info!(reason = reason.name(), caller, what, of_this_reason = count, "call refused");
            }
        }
        if let Some(audit) = &self.audit {
            audit.refused(caller, what, reason.name());
        }
        Refused(reason)
    }
}
