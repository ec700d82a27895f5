//! Limits that can be held.

use super::BudgetLimit;
use crate::algorithm::{Engine, Log};

/// Reason that a limit cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotHeld {
    /// Denied attempts are charged.
    #[error("it counts denied calls (`count_denied`)")]
    CountsDenied,
    /// Charges must be apart.
    #[error("its calls must be apart (`min_gap`)")]
    MinGap,
    /// The limit has reservations.
    #[error("it has reservations of its own (`hold: true`)")]
    Reserves,
    /// Calls pay afterwards.
    #[error("its calls pay afterwards (`charge_after`)")]
    ChargesAfter,
    /// Calls wait for their turn.
    #[error("its calls wait for their turn (`leaky_queue`)")]
    Paces,
    /// The rate changes.
    #[error("its rate changes (`warm_up`)")]
    WarmsUp,
}

impl BudgetLimit {
    /// Checks if a strategy may have it that `has_holds`.
    pub fn check_held(&self, has_holds: bool) -> Result<(), NotHeld> {
        let algorithm = &self.algorithm;
        match algorithm.engine() {
            _ if !has_holds || self.is_fixed() => Ok(()),
            _ if algorithm.counts_denied() => Err(NotHeld::CountsDenied),
            Engine::Log(Log { min_gap: 1.., .. }) => Err(NotHeld::MinGap),
            _ if algorithm.is_held() => Err(NotHeld::Reserves),
            _ if algorithm.undelayed().is_some() => Err(NotHeld::Paces),
            Engine::WarmUp(_) => Err(NotHeld::WarmsUp),
            _ if algorithm.charges_after() => Err(NotHeld::ChargesAfter),
            _ => Ok(()),
        }
    }
}
