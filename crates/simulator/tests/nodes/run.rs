//! A run, and what is known of it.

use std::fmt::Write as _;

use crate::checks::offences;
use crate::log::{CallOutcome, LoggedEvent, SimulationEvent};
use crate::plan::SimulationPlan;
use crate::world::SimulatedWorld;

/// The result of a run.
#[derive(Debug, Clone)]
pub struct SimulationReport {
    /// The plan of the run.
    pub plan: SimulationPlan,
    /// The offences; empty in a run without mistakes.
    pub offences: Vec<String>,
    /// A digest of everything that happened: calls, replies and verdicts, with their times.
    pub digest: String,
    /// Number of calls by their end, in this order: admitted and denied by Redis or by nodes that count, admitted and
    /// denied by a node because Redis did not answer, answered by a policy, failed.
    pub ends: [u64; 6],
    /// Number of scripts that ran.
    pub scripts: u64,
    events: Vec<LoggedEvent>,
}

impl SimulationReport {
    /// Runs the plan.
    #[must_use]
    pub fn run(plan: SimulationPlan) -> Self {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().expect("a runtime needs no files");
        let events = runtime.block_on(SimulatedWorld::run(plan.clone()));
        let mut report = Self {
            offences: offences(&events, plan.servers),
            plan,
            digest: digest(&events),
            ends: [0; 6],
            scripts: 0,
            events,
        };
        report.count();
        report
    }

    /// The same without what happened, which takes much memory.
    pub fn without_events(self) -> Self {
        Self { events: Vec::new(), ..self }
    }

    /// Returns the events, a line for each.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.events.iter().map(ToString::to_string)
    }

    fn count(&mut self) {
        for event in &self.events {
            let end = match &event.event {
                SimulationEvent::Script(_) => {
                    self.scripts += 1;
                    continue;
                }
                SimulationEvent::Ended { outcome, .. } => match outcome {
                    CallOutcome::Decided(decided) => usize::from(!decided.verdict.allowed),
                    CallOutcome::Local { allowed } => 2 + usize::from(!allowed),
                    CallOutcome::Policy { .. } => 4,
                    CallOutcome::Failed(_) => 5,
                },
                _ => continue,
            };
            self.ends[end] += 1;
        }
    }
}

fn digest(events: &[LoggedEvent]) -> String {
    let (mut sha, mut line) = (sha1_smol::Sha1::new(), String::new());
    for event in events {
        line.clear();
        let _ = writeln!(line, "{event}");
        sha.update(line.as_bytes());
    }
    sha.digest().to_string()
}
