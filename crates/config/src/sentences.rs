//! Errors of strategies as sentences.

use weir_core::strategy::StrategyError;

use super::values::shortened;

/// Formats the error as a sentence of bounded length.
pub(super) fn sentence(error: &StrategyError) -> String {
    match error {
        StrategyError::Name(name) => {
            StrategyError::Name(shortened(name).escape_debug().to_string()).to_string()
        }
        _ => error.to_string(),
    }
}
