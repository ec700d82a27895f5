//! Bans as decisions see them: who refuses callers before the store is asked, and sees denials.

use weir_core::algorithm::LimitVerdict;
use weir_core::key::Subject;
use weir_core::strategy::Strategy;
use weir_units::Micros;

/// The ban that denies a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BanHit {
    /// Index of the limit whose ban it is.
    pub limit: usize,
    /// Until the ban ends.
    pub wait: Micros,
}

/// Refuses callers before the store is asked, and sees denials. The workers share it, and it is asked under strategies with
/// `ban` only. It is a trait because a feature has it, which the node does not name.
pub trait Guard: Send + Sync {
    /// Returns the ban of this caller that ends last, if there is one.
    fn find(&self, strategy: &Strategy, subject: &Subject<'_>) -> Option<BanHit>;

    /// Sees a denial of a call that would have been charged. `verdicts` has what each limit said.
    fn denied(&self, strategy: &Strategy, subject: &Subject<'_>, verdicts: &[LimitVerdict]);
}
