//! A run: connects, starts the threads, reads the processes' CPU time, and builds the report.

use std::sync::{Arc, mpsc};
use std::time::Instant;

use socket2::{Socket, Type};

use super::LoadError;
use super::cpu::{Usages, usage};
use super::link::{LoadLink, LoadTarget};
use super::plan::{CallMode, CallProtocol, Plan, PlanEnd};
use super::report::{LoadReport, Measured};
use super::run_watch::RunWatch;
use super::service::CallShape;
use super::tally::Tally;
use super::worker::{LoadShare, LoadWorker, Record, part};
use weir_time::clock::monotonic;

/// Executes `plan`; returns when all calls have ended. `watch` reports the progress meanwhile.
///
/// # Errors
///
/// The connection is refused, the server is not gRPC, or the first answers say that every call will fail. Calls
/// that fail later are counted in the report.
pub fn run(plan: &Plan, watch: &RunWatch) -> Result<LoadReport, LoadError> {
    check(plan)?;
    let service = Arc::new(CallShape::new(plan.mode, plan.protocol, &plan.ask));
    let record = plan
        .record
        .as_deref()
        .map(Record::create)
        .transpose()
        .map_err(|source| LoadError::System { what: "the record cannot be written", source })?;
    let mut shares = Vec::new();
    for thread in 0..plan.threads {
        let count = part(plan.connections as u64, thread, plan.threads);
        let links = (0..count).map(|_| connect(plan, &service)).collect::<Result<_, _>>()?;
        let in_flight = part(plan.in_flight as u64, thread, plan.threads);
        shares.push(LoadShare { thread, links, in_flight, trace: record.clone().map(Record::trace) });
    }
    let begin = monotonic();
    let workers: Vec<_> = shares
        .into_iter()
        .map(|share| LoadWorker::new(plan, &service, watch, begin, share))
        .collect::<Result<_, _>>()?;
    measure(plan, begin, workers)
}

fn check(plan: &Plan) -> Result<(), LoadError> {
    let plain = |reason: &str| Err(LoadError::Plan(reason.to_owned()));
    if plan.threads == 0 || plan.connections < plan.threads {
        return plain("every thread needs a connection: lower --threads or raise --connections");
    }
    if plan.in_flight < plan.connections {
        return plain("every connection needs a call in flight: lower --connections or raise --in-flight");
    }
    let is_of_grpc = matches!(plan.mode, CallMode::Stream(_) | CallMode::Envoy);
    if plan.protocol == CallProtocol::Http && is_of_grpc {
        return plain("only --mode unary and batch can be called by HTTP: leave out --http");
    }
    if plan.record.is_some() && plan.mode.decisions() != 1 {
        return plain("the decisions of a batch are not recorded one by one: --record needs another --mode");
    }
    if let Some(pid) = plan.pids.iter().find(|pid| usage(Some(**pid)).is_none()) {
        return plain(&format!("there is no process {pid} here whose CPU time /proc would report"));
    }
    Ok(())
}

fn connect(plan: &Plan, service: &Arc<CallShape>) -> Result<LoadLink, LoadError> {
    let unreachable = |error: std::io::Error| LoadError::Unreachable {
        server: match plan.address.as_pathname() {
            Some(path) => format!("unix:{}", path.display()),
            None => plan.authority.clone(),
        },
        reason: error.to_string(),
    };
    let socket = Socket::new(plan.address.domain(), Type::STREAM, None).map_err(unreachable)?;
    socket.connect_timeout(&plan.address, plan.timeout).map_err(unreachable)?;
    let target = Arc::new(LoadTarget {
        address: plan.address.clone(),
        authority: plan.authority.clone(),
        access: plan.access.clone(),
    });
    LoadLink::new(socket, target, Arc::clone(service)).map_err(unreachable)
}

/// Runs the workers, and reads the processes' usage at the beginning and the end of the counted part.
fn measure(plan: &Plan, begin: Instant, workers: Vec<LoadWorker<'_>>) -> Result<LoadReport, LoadError> {
    let (done, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        let threads = workers.len();
        for (index, worker) in workers.into_iter().enumerate() {
            let done = done.clone();
            let spawned =
                std::thread::Builder::new().name(format!("load-{index}")).spawn_scoped(scope, move || {
                    // The receiver is gone if another thread failed.
                    let _ = done.send(worker.run());
                });
            spawned.map_err(|source| LoadError::System { what: "no thread can be started", source })?;
        }
        drop(done);
        let mut ended = EndedWorkers { channel: ended, running: threads, tally: None };
        ended.wait_until(Some(begin + plan.warm_up))?;
        let before = Usages::new(plan);
        ended.wait_until(match plan.end {
            PlanEnd::After(duration) => Some(begin + plan.warm_up + duration),
            PlanEnd::Calls(_) => None,
        })?;
        let after = Usages::new(plan);
        let until = monotonic();
        ended.wait_until(None)?;
        let tally = ended.tally.ok_or_else(|| LoadError::Plan("nothing was run".to_owned()))?;
        Ok(LoadReport::new(plan, tally, Measured { until: until - begin, before, after }))
    })
}

/// Collects the results of the workers.
struct EndedWorkers {
    channel: mpsc::Receiver<Result<Tally, LoadError>>,
    running: usize,
    tally: Option<Tally>,
}

impl EndedWorkers {
    /// Waits for all workers, until `end` at most.
    fn wait_until(&mut self, end: Option<Instant>) -> Result<(), LoadError> {
        while self.running > 0 {
            let received = match end {
                Some(end) => self.channel.recv_timeout(end.saturating_duration_since(monotonic())),
                None => self.channel.recv().map_err(Into::into),
            };
            match received {
                Ok(tally) => {
                    self.running -= 1;
                    let tally = tally?;
                    match &mut self.tally {
                        None => self.tally = Some(tally),
                        Some(all) => all.add(tally),
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => return Ok(()),
                Err(mpsc::RecvTimeoutError::Disconnected) => self.running = 0,
            }
        }
        Ok(())
    }
}
