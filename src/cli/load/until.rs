//! `weir load --until-allowed COUNT`: the closed loop of `weir simulate --pattern until:COUNT`, against a running server. Each
//! consumer calls again when the server's answer says that it may.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::runtime::{Builder, Runtime};
use weir_load::ServerAccess;
use weir_load::client::{Client, ClientError};
use weir_proto::v1::{Reason, ShouldAllowRequest, ShouldAllowResponse};
use weir_time::clock::monotonic;
use weir_units::{Micros, Retry};

use super::output::LoadOutput;
use crate::cli::server_args::explained;
use crate::cli::simulate::{LiveRuns, Simulated, SimulationOutput};
use crate::simulation::{
    SimulatedCall, SimulatedCalls, SimulatedStrategy, UntilCallers, UntilDecider, UntilPattern,
};

/// Most consumers of a loop: its calls are made one after another.
const MOST_CONSUMERS: u64 = 1_000;

/// Interval of the lines of progress.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// A run that goes on until so many calls were allowed.
pub(super) struct UntilPlan {
    /// The number of calls that must pass.
    pub(super) allowed: u64,
    /// Calls a second; `None`: each consumer calls again as soon as it may.
    pub(super) rate: Option<f64>,
    pub(super) server: String,
    pub(super) access: ServerAccess,
    pub(super) timeout: Duration,
    /// One run for each.
    pub(super) strategies: Vec<String>,
    pub(super) resource: String,
    pub(super) consumer: String,
    pub(super) consumers: u64,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) cost: u64,
    pub(super) column: Option<Micros>,
    pub(super) window: Micros,
    pub(super) is_quiet: bool,
}

/// Runs the loop of each strategy, and returns the report.
pub(super) fn run(plan: &UntilPlan, output: LoadOutput) -> Result<String> {
    if plan.consumers > MOST_CONSUMERS {
        bail!("--keys: at most {MOST_CONSUMERS} consumers call until so many are allowed");
    }
    let text = match plan.rate {
        None => format!("until:{}", plan.allowed),
        Some(rate) => format!("until:{}:constant:{rate}/s", plan.allowed),
    };
    let Some(pattern) = UntilPattern::parse(&text).transpose()? else { bail!("{text} is no pattern") };
    let mut runs = Vec::new();
    for strategy in &plan.strategies {
        let mut live = LiveStrategy::connect(plan, strategy)?;
        let callers = UntilCallers {
            resource: &plan.resource,
            consumers: usize::try_from(plan.consumers).unwrap_or(usize::MAX),
            cost: plan.cost,
            costs: &[],
            seed: 0,
        };
        let calls = pattern.run(&mut live, callers);
        live.show_no_more();
        runs.push((live.result, calls.with_context(|| format!("strategy `{strategy}`"))?));
    }
    let simulated =
        Simulated::live(LiveRuns { pattern: text, column: plan.column, window: plan.window, runs })?;
    simulated.shown(match output {
        LoadOutput::Text => SimulationOutput::Text,
        LoadOutput::Json => SimulationOutput::Json,
        LoadOutput::Svg => SimulationOutput::Svg,
    })
}

/// One strategy of the server.
struct LiveStrategy<'a> {
    plan: &'a UntilPlan,
    runtime: Runtime,
    client: Client,
    begin: Instant,
    result: SimulatedStrategy,
    shown_at: Instant,
}

impl<'a> LiveStrategy<'a> {
    fn connect(plan: &'a UntilPlan, strategy: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(Client::connect_with(&plan.server, &plan.access, plan.timeout));
        let client = client.map_err(explained)?;
        let result = SimulatedStrategy { strategy: strategy.to_owned(), ..SimulatedStrategy::default() };
        let begin = monotonic();
        Ok(Self { plan, runtime, client, begin, result, shown_at: begin })
    }

    fn request(&self, subject: usize) -> ShouldAllowRequest {
        let name = |pattern: &str| pattern.replace("{key}", &subject.to_string());
        ShouldAllowRequest {
            resource: name(&self.plan.resource),
            consumer: name(&self.plan.consumer),
            strategy: self.result.strategy.clone(),
            cost: Some(self.plan.cost),
            attributes: self.plan.attributes.iter().cloned().collect(),
            ..ShouldAllowRequest::default()
        }
    }

    /// Says how far it is.
    fn show(&mut self) {
        let now = monotonic();
        if self.plan.is_quiet || now.saturating_duration_since(self.shown_at) < SHOWN_EVERY {
            return;
        }
        self.shown_at = now;
        let SimulatedStrategy { strategy, allowed, denied, .. } = &self.result;
        let line = format!("{strategy}: {allowed} of {} allowed, {denied} denied", self.plan.allowed);
        // Who cannot read it gets the report.
        let _ = match io::stderr().is_terminal() {
            true => write!(io::stderr(), "\r\x1b[K{line}"),
            false => writeln!(io::stderr(), "{line}"),
        };
    }

    fn show_no_more(&self) {
        if !self.plan.is_quiet && io::stderr().is_terminal() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl UntilDecider for LiveStrategy<'_> {
    type Error = anyhow::Error;

    fn decide(&mut self, _: &SimulatedCalls, call: &mut SimulatedCall) -> Result<Option<Micros>> {
        let request = self.request(call.subject);
        let Self { runtime, client, begin, .. } = self;
        let begin = *begin;
        let passed = move || monotonic().saturating_duration_since(begin);
        let asked: Result<ShouldAllowResponse, ClientError> = runtime.block_on(async {
            tokio::time::sleep(Duration::from(call.at).saturating_sub(passed())).await;
            call.at = Micros::from(passed());
            client.should_allow(request).await
        });
        let answer = asked.map_err(explained)?;
        if answer.degraded {
            bail!("the store did not answer, so the failure policy did: the run would compare nothing");
        }
        let wait = if answer.allowed {
            self.result.admit(call.cost, micros(answer.wait.as_ref()))
        } else {
            answer.denied_by.iter().for_each(|limit| self.result.deny_by(limit));
            self.result.deny(retry(&answer))
        };
        self.show();
        // The wait counts from the decision, which was made before the answer came.
        let took = Micros::from(passed()).0.saturating_sub(call.at.0);
        Ok(wait.map(|wait| Micros(wait.0.saturating_add(took))))
    }

    fn result(&self) -> &SimulatedStrategy {
        &self.result
    }
}

fn retry(answer: &ShouldAllowResponse) -> Retry {
    match &answer.retry_after {
        Some(wait) if !matches!(answer.reason(), Reason::Never | Reason::DenyList) => {
            Retry::After(micros(Some(wait)))
        }
        _ => Retry::Never,
    }
}

fn micros(span: Option<&prost_types::Duration>) -> Micros {
    let span = span.and_then(|span| Duration::try_from(*span).ok()).unwrap_or_default();
    // A wait in nanoseconds would be too short by less than a microsecond.
    Micros(u64::try_from(span.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX))
}
