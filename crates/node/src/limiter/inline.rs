//! Inline limits: limits inside requests.

use weir_core::strategy::{InlineLimits, Resolved, Rules};
use weir_store::Store;

use super::decided::LimiterError;
use super::{InlineLimit, InvalidField, Limiter, Question, bounds};

impl<S: Store> Limiter<S> {
    /// Settings that all inline limits share. Fails if inline limits are off.
    pub fn inline_limits(&self) -> Result<&InlineLimits, LimiterError> {
        self.rules.inline_limits().ok_or_else(|| self.refused(off()))
    }
}

/// Resolves a question with an inline limit.
#[cold]
pub(super) fn resolve<'a>(
    rules: &'a Rules,
    question: &'a Question<'_>,
    limit: &'a InlineLimit<'_>,
) -> Result<Resolved<'a>, LimiterError> {
    if !question.strategy.is_empty() {
        let bound = "it must be empty, because the request brings a limit along".to_owned();
        let value = format!("\"{}\"", bounds::shown(question.strategy));
        return Err(InvalidField { field: "strategy", value, bound }.into());
    }
    match limit {
        InlineLimit::Built(strategy) => {
            Ok(rules.resolve_inline(question.resource, question.consumer, strategy))
        }
        InlineLimit::Encoded(_) => Err(off()),
    }
}

fn off() -> LimiterError {
    LimiterError::Unsupported(
        "inline: this server takes no limits from requests; name a configured strategy, or set \
         `server.inline_limits: true`"
            .to_owned(),
    )
}
