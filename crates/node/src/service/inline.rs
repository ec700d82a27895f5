//! Inline limits: decoded into a strategy, which is cached.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prost::Message as _;
use prost_types::Duration;
use tonic::Status;
use weir_config::AccessRight;
use weir_core::algorithm::{Algorithm, Invalid, Rate};
use weir_core::strategy::{FailurePolicy, InlineLimits, MAX_INLINE_NAME, Strategy};
use weir_proto::v1::inline_limit::Algorithm as AskedAlgorithm;
use weir_proto::v1::{self, InlineBucketedWindow, InlineTokenBucket, InlineWindow, StoreFailurePolicy};
use weir_store::Store;
use weir_units::Micros;

use super::Decisions;
use super::span::micros;
use super::status;
use super::wire::Malformed;
use crate::access::Rights;
use crate::limiter::{InlineLimit, InvalidField, LimiterError, Question, shown};

/// Capacity of a worker's cache. A full cache is cleared.
const MAX_KEPT: usize = 1024;

/// Longest encoding that is cached. Every limit within its bounds fits, unless a field is encoded twice.
const MAX_KEPT_BYTES: usize = 160;

/// Largest limit of a log, because a log keeps an entry for each call.
const MAX_LOG: u64 = 1000;

/// Time for which a key of an inline limit may live. Callers choose the numbers, and a key that lives for years is never freed.
const LONGEST_LIFE: Micros = Micros::from_secs(400 * 86_400);

/// Bound of a span of time, in error texts.
const SPAN_BOUND: &str = "it must be from 1us to 400 days";

/// Cache of one worker's inline limits, by their encodings.
#[derive(Default)]
pub(super) struct InlineStrategies(Mutex<HashMap<Box<[u8]>, Arc<Strategy>>>);

impl<S: Store> Decisions<S> {
    /// Replaces the encoded limit of a question by its strategy, from the cache or newly built.
    #[cold]
    pub(super) fn build_inline(&self, question: &mut Question<'_>) -> Result<(), Status> {
        if question.inline().is_some() {
            self.limiter.authorize(AccessRight::Decide, question).map_err(status::new)?;
        }
        let limit = question.shaping.as_deref_mut().and_then(|shaping| shaping.inline.as_mut());
        let Some(limit) = limit else { return Ok(()) };
        if let InlineLimit::Encoded(bytes) = limit {
            let built = self.inline.find(bytes).map_or_else(|| self.build(bytes), Ok)?;
            *limit = InlineLimit::Built(built);
        }
        Ok(())
    }

    /// The limit of a generated request, from the cache or newly built. Who has no right to inline limits learns
    /// nothing of them; the limiter checks the right in full.
    pub(super) fn inline_of(
        &self,
        asked: Option<&v1::InlineLimit>,
        rights: Rights<'_>,
    ) -> Result<Option<InlineLimit<'static>>, Status> {
        let Some(asked) = asked else { return Ok(None) };
        rights.check_any(AccessRight::Inline).map_err(|refused| status::new(LimiterError::from(refused)))?;
        let bytes = asked.encode_to_vec();
        let built = self.inline.find(&bytes).map_or_else(|| self.build(&bytes), Ok)?;
        Ok(Some(InlineLimit::Built(built)))
    }

    fn build(&self, bytes: &[u8]) -> Result<Arc<Strategy>, Status> {
        let malformed = |_| status::malformed(Malformed("inline is no limit"));
        let asked = v1::InlineLimit::decode(bytes).map_err(malformed)?;
        let limits = self.limiter.inline_limits().map_err(status::new)?;
        let refused = |error| status::new(self.limiter.refused(LimiterError::Invalid(error)));
        let built = Arc::new(strategy(limits, &asked).map_err(refused)?);
        self.inline.keep(bytes, &built);
        Ok(built)
    }
}

impl InlineStrategies {
    fn find(&self, bytes: &[u8]) -> Option<Arc<Strategy>> {
        self.0.lock().get(bytes).cloned()
    }

    fn keep(&self, bytes: &[u8], strategy: &Arc<Strategy>) {
        if bytes.len() > MAX_KEPT_BYTES {
            return;
        }
        let mut kept = self.0.lock();
        if kept.len() >= MAX_KEPT {
            // Those in use are cached again at their next call.
            kept.clear();
        }
        kept.insert(bytes.into(), Arc::clone(strategy));
    }
}

fn strategy(limits: &InlineLimits, asked: &v1::InlineLimit) -> Result<Strategy, InvalidField> {
    let name_bound = || InvalidField {
        field: "inline.name",
        value: format!("\"{}\"", shown(&asked.name)),
        bound: format!("it must be 1 to {MAX_INLINE_NAME} of the characters A-Z a-z 0-9 . _ - /"),
    };
    if asked.name.len() > MAX_INLINE_NAME {
        return Err(name_bound());
    }
    let algorithm = algorithm(asked.algorithm.as_ref())?;
    let policy = policy(asked.on_store_failure)?;
    limits.strategy(&asked.name, algorithm, policy, asked.separate).map_err(|_| name_bound())
}

fn algorithm(asked: Option<&AskedAlgorithm>) -> Result<Algorithm, InvalidField> {
    match asked {
        None => Err(InvalidField {
            field: "inline.algorithm",
            value: "not set".to_owned(),
            bound:
                "it must be one of token_bucket, fixed_window, sliding_window, sliding_log, bucketed_window"
                    .to_owned(),
        }),
        Some(AskedAlgorithm::TokenBucket(InlineTokenBucket { rate, period, burst })) => {
            let period = span("inline.token_bucket.period", period.as_ref())?;
            let rate = Rate { count: *rate, period };
            let burst = burst.unwrap_or(rate.count);
            check_filling(burst, rate)?;
            Algorithm::bucket(burst, rate).map_err(|error| {
                let field = match error.field {
                    "burst" => "inline.token_bucket.burst",
                    _ => "inline.token_bucket.rate",
                };
                invalid(field, error)
            })
        }
        Some(AskedAlgorithm::FixedWindow(window)) => {
            let fields = ("inline.fixed_window.limit", "inline.fixed_window.window");
            of_window(fields, window, |limit, span| Algorithm::fixed_window(limit, span, false, false))
        }
        Some(AskedAlgorithm::SlidingWindow(window)) => {
            let fields = ("inline.sliding_window.limit", "inline.sliding_window.window");
            // The key outlives its window by another one, in which it still counts in part.
            let span = span(fields.1, window.window.as_ref())?;
            if span.0 > LONGEST_LIFE.0 / 2 {
                let bound =
                    "it must be from 1us to 200 days: a sliding window counts for two windows".to_owned();
                return Err(InvalidField { field: fields.1, value: span.to_string(), bound });
            }
            of_window(fields, window, Algorithm::sliding_window)
        }
        Some(AskedAlgorithm::SlidingLog(window)) => {
            let fields = ("inline.sliding_log.limit", "inline.sliding_log.window");
            if window.limit > MAX_LOG {
                let bound =
                    format!("it must be at most {MAX_LOG}, because a log keeps an entry for each call");
                return Err(InvalidField { field: fields.0, value: window.limit.to_string(), bound });
            }
            of_window(fields, window, Algorithm::sliding_log)
        }
        Some(AskedAlgorithm::BucketedWindow(InlineBucketedWindow { limit, window, buckets })) => {
            let window = span("inline.bucketed_window.window", window.as_ref())?;
            Algorithm::bucketed_window(*limit, window, *buckets, true).map_err(|error| {
                let field = match error.field {
                    "limit" => "inline.bucketed_window.limit",
                    "buckets" => "inline.bucketed_window.buckets",
                    _ => "inline.bucketed_window.window",
                };
                invalid(field, error)
            })
        }
    }
}

/// Refuses a bucket that takes longer to fill than its key may live.
fn check_filling(burst: u64, rate: Rate) -> Result<(), InvalidField> {
    let filling = u128::from(burst) * u128::from(rate.period.0) / u128::from(rate.count.max(1));
    if rate.count == 0 || filling <= u128::from(LONGEST_LIFE.0) {
        return Ok(());
    }
    let bound = "the time to fill it must be at most 400 days".to_owned();
    Err(InvalidField { field: "inline.token_bucket.burst", value: burst.to_string(), bound })
}

fn of_window(
    fields: (&'static str, &'static str),
    asked: &InlineWindow,
    make: impl FnOnce(u64, Micros) -> Result<Algorithm, Invalid>,
) -> Result<Algorithm, InvalidField> {
    let window = span(fields.1, asked.window.as_ref())?;
    make(asked.limit, window)
        .map_err(|error| invalid(if error.field == "window" { fields.1 } else { fields.0 }, error))
}

fn span(field: &'static str, span: Option<&Duration>) -> Result<Micros, InvalidField> {
    let refused = |value: String| InvalidField { field, value, bound: SPAN_BOUND.to_owned() };
    let span = span.ok_or_else(|| refused("not set".to_owned()))?;
    let micros = micros(field, span, SPAN_BOUND)?;
    if micros == Micros::ZERO || micros > LONGEST_LIFE {
        return Err(refused(micros.to_string()));
    }
    Ok(micros)
}

fn policy(asked: i32) -> Result<FailurePolicy, InvalidField> {
    match StoreFailurePolicy::try_from(asked) {
        Ok(StoreFailurePolicy::Unspecified | StoreFailurePolicy::Error) => Ok(FailurePolicy::Error),
        Ok(StoreFailurePolicy::Allow) => Ok(FailurePolicy::Allow),
        Ok(StoreFailurePolicy::Deny) => Ok(FailurePolicy::Deny),
        Err(_) => Err(InvalidField {
            field: "inline.on_store_failure",
            value: asked.to_string(),
            bound: "it must be 0 (not set), 1 (ERROR), 2 (ALLOW) or 3 (DENY)".to_owned(),
        }),
    }
}

fn invalid(field: &'static str, Invalid { value, bound, .. }: Invalid) -> InvalidField {
    InvalidField { field, value, bound }
}
