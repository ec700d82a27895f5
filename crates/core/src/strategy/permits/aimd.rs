//! The numbers of AIMD.

use weir_units::Micros;

/// The numbers of an AIMD limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AimdRule {
    /// Factor of the limit after work that was dropped or timed out.
    pub backoff: f64,
    /// Work that takes longer counts as dropped.
    pub timeout: Micros,
}
