//! Envoy's question: finds the rules that the descriptors of a request match, and decides each of them.
//!
//! Every descriptor is a decision of its own. All of them are put to the store at once, and one that is
//! over does not keep the others from being charged: that is what the reference service does too. Unlike
//! there, a denied descriptor charges nothing, but where its rule says `count_rejected`; and in domains of `all_or_none`
//! descriptors are decided together.

mod all_or_none;
mod ask;
mod at_once;
mod decide;
mod given;
mod name;
mod order;
mod overall;
mod questions;
mod rule;
mod status;
mod stop;

use std::slice;
use std::sync::Arc;
use std::time::Instant;

use crate::rules::{Domain, Domains, Rule};
use crate::settings::EnvoyConfig;
use smallvec::SmallVec;
use weir_core::algorithm::{EngineKind, LimitVerdict, Op, Verdict};
use weir_node::feature::Decide;
use weir_node::feature_parts::{FeatureLimits, FeaturePart};
use weir_node::limiter::{AnswerReserve, InvalidField, LimiterError, LimitsDecision};
use weir_node::settle::{Outcome, StoreDecision};
use weir_node::telemetry::{CountedMethod, CountedOutcome, Recorder, Rejection};
use weir_time::clock;

pub use self::ask::{DescriptorAsk, RateLimitAnswer, RateLimitAsk};
use self::given::Given;
pub use self::overall::Overall;
use self::questions::Questions;
use self::rule::FoundLimit;
pub use self::status::{Code, DescriptorStatus};
use crate::metrics::{
    AnswerCode, DomainCounts, EnvoyEvent, EnvoyMetrics, EnvoyRecorder, FileCounts, RuleCounts,
};

/// The most descriptors that a request may have.
pub const MAX_DESCRIPTORS: usize = 1000;

/// The most entries that a descriptor may have.
pub const MAX_ENTRIES: usize = 64;

/// The longest domain, key or value, in bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// The rules of one set of files, and the counters of their hits. A reload makes a new one.
#[derive(Debug)]
pub struct Loaded {
    domains: Arc<Domains>,
    counts: FileCounts,
}

/// The decisions of one worker under one snapshot.
pub struct EnvoyDecisions {
    store: Arc<dyn Decide>,
    recorder: Arc<Recorder>,
    reserve: AnswerReserve,
    /// True if the store answers at once.
    at_once: bool,
}

/// State of one worker for Envoy's requests, beside its limiter.
#[derive(Debug)]
pub struct EnvoyLimiter {
    config: EnvoyConfig,
    given: Given,
    recorder: EnvoyRecorder,
}

/// The status code of an error for the caller.
fn code_of(error: &LimiterError) -> AnswerCode {
    match error {
        LimiterError::Store { .. } => AnswerCode::Unavailable,
        LimiterError::Unsupported(_) => AnswerCode::FailedPrecondition,
        _ => AnswerCode::InvalidArgument,
    }
}

/// Counts how a request ended, also if it was cancelled before there was an answer.
struct EndOfRequest<'e> {
    recorder: &'e EnvoyRecorder,
    domain: Option<&'e DomainCounts>,
    deadline: Option<Instant>,
    code: Option<AnswerCode>,
}

impl EndOfRequest<'_> {
    #[inline]
    fn answered(&mut self, answer: &Result<RateLimitAnswer<'_>, LimiterError>) {
        self.code = Some(answer.as_ref().map_or_else(code_of, |_| AnswerCode::Ok));
    }
}

impl Drop for EndOfRequest<'_> {
    fn drop(&mut self) {
        let given_up = || match self.deadline {
            Some(deadline) if clock::monotonic() >= deadline => AnswerCode::DeadlineExceeded,
            _ => AnswerCode::Cancelled,
        };
        self.recorder.answered(self.domain, self.code.unwrap_or_else(given_up));
    }
}

/// A descriptor on its way to the store.
#[derive(Clone)]
struct DescriptorQuestion<'a> {
    found: FoundLimit<'a>,
    name: String,
    op: Op,
    hits: u64,
    /// The hits that the store charges: none if another descriptor of the request is over.
    charged: u64,
}

/// The store's decision over the one limit of a descriptor.
#[derive(Clone, Copy)]
struct DescriptorDecision {
    verdict: Verdict,
    limit: LimitVerdict,
    /// True if the cache of denials answered.
    cached: bool,
}

impl StoreDecision for DescriptorDecision {
    fn counted(&self) -> CountedOutcome {
        LimitsDecision { verdict: self.verdict, limits: slice::from_ref(&self.limit), costs: None }.counted()
    }
}

impl Loaded {
    /// The rules of `domains`, whose hits `metrics` counts.
    #[must_use]
    pub fn new(domains: Arc<Domains>, metrics: &EnvoyMetrics) -> Self {
        let counts = metrics.counts_of(&domains);
        Self { domains, counts }
    }

    /// The part of the snapshot.
    #[must_use]
    pub fn part(self, overrides_in_request: bool) -> FeaturePart {
        let limits = limits(&self.domains, overrides_in_request);
        FeaturePart::new(Arc::new(self)).with_limits(limits)
    }

    /// The domains.
    #[must_use]
    pub fn domains(&self) -> &Domains {
        &self.domains
    }

    fn counts(&self, rule: &Rule) -> Option<&RuleCounts> {
        self.counts.rules.get(rule.index).map(|counts| &**counts)
    }

    fn domain_counts(&self, domain: &Domain) -> Option<&DomainCounts> {
        self.counts.domains.get(domain.index()).map(|counts| &**counts)
    }
}

impl EnvoyLimiter {
    /// Counts a request that ended before its domain was known.
    pub fn unread(&self, code: AnswerCode) {
        self.recorder.answered(None, code);
    }

    /// The settings of requests and answers.
    #[inline]
    pub(crate) const fn config(&self) -> &EnvoyConfig {
        &self.config
    }

    /// State for one worker.
    #[must_use]
    pub fn new(config: EnvoyConfig, recorder: EnvoyRecorder) -> Self {
        Self { config, given: Given::default(), recorder }
    }
}

/// Returns the limits of the rules. Overrides in requests are windows.
#[must_use]
pub fn limits(domains: &Domains, overrides_in_request: bool) -> FeatureLimits {
    let limits = domains.rules().iter().filter_map(|rule| rule.limit.as_ref());
    let engines = limits.flat_map(|limit| limit.strategy().algorithms()).map(|limit| limit.engine().kind());
    FeatureLimits {
        uses: engines.chain(overrides_in_request.then_some(EngineKind::Window)).collect(),
        owners: domains.iter().map(|domain| Arc::clone(domain.owner())).collect(),
        approximate: domains.approximate(),
        called: "Envoy's rules with the same `approximate`",
    }
}

impl EnvoyDecisions {
    /// Creates the decisions of one worker by its store, which `recorder` counts.
    #[must_use]
    pub fn new(store: Arc<dyn Decide>, recorder: Arc<Recorder>, reserve: AnswerReserve) -> Self {
        let at_once = store.is_at_once();
        Self { store, recorder, reserve, at_once }
    }

    /// Deadline of the store, early enough to answer for a silent store before `deadline`.
    fn store_deadline(&self, deadline: Option<Instant>, now: Instant) -> Option<Instant> {
        deadline.filter(|_| !self.at_once).map(|deadline| self.reserve.for_store(deadline, now))
    }

    /// Answers one request under the rules of `loaded`. To be over a limit is an answer, not an error.
    pub async fn rate_limit<'a>(
        &self,
        envoy: &EnvoyLimiter,
        loaded: &'a Loaded,
        ask: &RateLimitAsk<'_>,
    ) -> Result<RateLimitAnswer<'a>, LimiterError> {
        let (domain, mut ended) = self.begin(envoy, loaded, ask)?;
        let answer = self.answer(envoy, loaded, domain, ask).await;
        ended.answered(&answer);
        answer
    }

    /// The domain of a request whose caller has a right to it, and what counts its end.
    #[inline]
    fn begin<'e, 'a: 'e>(
        &self,
        envoy: &'e EnvoyLimiter,
        loaded: &'a Loaded,
        ask: &RateLimitAsk<'_>,
    ) -> Result<(Option<&'a Domain>, EndOfRequest<'e>), LimiterError> {
        // Before the domain is looked up, and counted as no request.
        let gives_back = ask.descriptors.iter().any(|descriptor| descriptor.refund);
        ask.rights.check_domain(ask.domain, gives_back)?;
        let domain = loaded.domains.find(ask.domain);
        let counts = domain.and_then(|domain| loaded.domain_counts(domain));
        let recorder = &envoy.recorder;
        Ok((domain, EndOfRequest { recorder, domain: counts, deadline: ask.deadline, code: None }))
    }

    /// Appends the questions of a request, unless it is refused. They are large, so they are made in place.
    #[inline]
    fn pose<'a>(
        &self,
        questions: &mut Questions<'a>,
        envoy: &EnvoyLimiter,
        (loaded, domain): (&Loaded, Option<&'a Domain>),
        ask: &RateLimitAsk<'_>,
    ) -> Result<(), LimiterError> {
        if domain.is_none() && loaded.domains.is_missing(ask.domain) {
            return Err(LimiterError::Unsupported("no rate limit configuration loaded".to_owned()));
        }
        let posed = questions::pose(questions, envoy, domain, ask);
        posed.inspect_err(|_| self.recorder.rejected(Rejection::Invalid))
    }

    async fn answer<'a>(
        &self,
        envoy: &EnvoyLimiter,
        loaded: &'a Loaded,
        domain: Option<&'a Domain>,
        ask: &RateLimitAsk<'_>,
    ) -> Result<RateLimitAnswer<'a>, LimiterError> {
        let mut questions = Questions::new();
        self.pose(&mut questions, envoy, (loaded, domain), ask)?;
        let together = domain.zip(envoy.config.all_or_none.by(ask.domain)).map(|(domain, by)| {
            Ok((domain, all_or_none::groups(by, ask, &questions, envoy.config.shadow_mode)?))
        });
        let together: Result<_, InvalidField> = together.transpose();
        let together = together.inspect_err(|_| self.recorder.rejected(Rejection::Invalid))?;
        let asker = (ask.deadline, ask.rights.caller());
        let started = clock::monotonic();
        if envoy.config.stop_when_over {
            self.stop_at_first_over(envoy, &mut questions, asker, started).await;
        }
        let decided = match together {
            None => self.decide_all(envoy, &questions, asker, started).await,
            Some((domain, groups)) => {
                self.decide_groups(envoy, domain, (groups, &questions), asker, started).await
            }
        };
        let took = clock::monotonic().saturating_duration_since(started);
        // Stores that answer at once are timed once here; pending answers are timed each.
        let answered = decided.iter().flatten().flatten();
        let answered = answered.filter(|one| self.at_once && matches!(one, Outcome::Decided(_))).count();
        self.recorder.took(CountedMethod::ShouldRateLimit, took, 1, answered as u64);
        let decided =
            decided.inspect_err(|error| tracing::debug!(domain = ask.domain, %error, "rate limit"))?;
        let mut statuses = SmallVec::new();
        for (question, decided) in questions.iter_mut().zip(&decided) {
            statuses.push(status::status_of(envoy, loaded, domain, question, decided.as_ref()));
        }
        Ok(Self::answer_of(envoy, ask, statuses))
    }

    #[inline]
    fn answer_of<'a>(
        envoy: &EnvoyLimiter,
        ask: &RateLimitAsk<'_>,
        statuses: SmallVec<[DescriptorStatus<'a>; 2]>,
    ) -> RateLimitAnswer<'a> {
        let overall = Overall::new(&envoy.config, &statuses);
        if overall.shadowed {
            envoy.recorder.happened(EnvoyEvent::GlobalShadow);
        }
        tracing::debug!(
            domain = ask.domain,
            descriptors = statuses.len(),
            over = overall.over,
            peer = %weir_grpc::current_peer(),
            "rate limit"
        );
        RateLimitAnswer { overall, statuses }
    }
}
