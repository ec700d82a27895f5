//! The checks of a run: what it promises, against what happened.
//!
//! * `exact`: each script decided as the pure model does, in the order in which the scripts ran; each node was told what a
//!   script decided, once; each caller was admitted by such an answer, once. A failover puts the model back, too.
//! * `counting`: the same for the counters and the places of strategies that nodes count.
//! * `bounds`: what callers were admitted, against the bound of each strategy.
//! * `leases`: what holders hold, against the limit of permits.
//! * `holds`: what is held and used of a token budget, against its limit; and that nothing is held or settled twice.

mod bounds;
mod counting;
mod exact;
mod holds;
mod leases;
mod resp;
mod scripts;

use std::sync::Arc;

use weir_core::strategy::Rules;

use self::bounds::AdmittedCalls;
use self::counting::CountingModel;
use self::exact::ExactModel;
pub(crate) use self::scripts::name_of;
use self::scripts::{CheckedScript, kind_of};
use crate::log::{LoggedEvent, SimulationEvent, WorldFault};
use crate::setup::SimulatedConfig;

/// Offences against the models that are shown of one run, besides those against bounds.
const SHOWN: usize = 5;

/// Facts of a run that all checks need.
pub(crate) struct CheckedRun {
    pub(crate) rules: Arc<Rules>,
    /// Number of failovers and clock steps of servers.
    pub(crate) exceptions: u64,
}

/// Checks a run on so many servers. Returns what is wrong.
pub(crate) fn offences(events: &[LoggedEvent], servers: usize) -> Vec<String> {
    let is_exception = |event: &&LoggedEvent| {
        let SimulationEvent::Fault(fault) = &event.event else { return false };
        matches!(fault, WorldFault::ServerFailsOver(_) | WorldFault::ClockSteps { .. })
    };
    let exceptions = events.iter().filter(is_exception).count() as u64;
    let run = CheckedRun { rules: SimulatedConfig::on(servers).rules, exceptions };
    let (mut exact, mut counting) = (ExactModel::new(servers), CountingModel::new(servers));
    let (mut admitted, mut found) = (AdmittedCalls::default(), Vec::new());
    for event in events {
        let at = event.at;
        let wrong = match &event.event {
            SimulationEvent::Script(script) => match kind_of(script.name) {
                CheckedScript::Decisions => exact.run_script(&run, script, at),
                CheckedScript::Counters => counting.count(script),
                CheckedScript::Places => counting.places(script),
                CheckedScript::Others => Ok(()),
            },
            SimulationEvent::Asked(question) => {
                exact.ask(question);
                Ok(())
            }
            SimulationEvent::Answered(question, Ok(decided)) => exact.answer(question, decided),
            SimulationEvent::Ended { node, counter, cost, outcome, .. } => {
                let ended = exact.end(counter, *cost, outcome);
                let decided_at = ended.as_ref().ok().copied().flatten();
                admitted.add((*node, at), counter, *cost, (outcome, decided_at));
                ended.map(drop)
            }
            SimulationEvent::Fault(fault) => {
                exact.fault(fault);
                counting.fault(fault);
                admitted.fault(fault);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(why) = wrong
            && found.len() < SHOWN
        {
            found.push(format!("{:.3} ms: {why}", at as f64 / 1_000.0));
        }
    }
    found.extend(admitted.excess(&run));
    found.extend(leases::excess(events, &run));
    found.extend(holds::excess(events, &run));
    found
}
