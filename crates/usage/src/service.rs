//! `weir.v1.UsageService` over messages.

use std::collections::BTreeMap;

use prost_types::{Duration, Timestamp};
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use weir_node::access::Rights;
use weir_node::feature::ServiceContext;
use weir_node::limiter::{InvalidField, shown};
use weir_node::service::{AddRoutes, call_context as context, duration, micros as span_micros, status};
use weir_proto::v1::usage_service_server::{self, UsageService, UsageServiceServer};
use weir_proto::v1::{
    ConsumerCalls, ConsumerOutcome, DeploymentNode, GetUsageRequest, GetUsageResponse, ListNodesRequest,
    ListNodesResponse, NodeState, TopConsumersRequest, TopConsumersResponse, UsagePoint, UsageSeries,
};
use weir_units::Micros;

use crate::consumers::{ConsumerKey, ConsumerTally, MAX_TALLIES};
use crate::history::{
    self, ConsumersAnswer, ConsumersAsk, ConsumersWindow, NodesAnswer, UsageAnswer, UsageAsk, UsageCost,
    UsageError, UsageHandle, UsageRow, UsageTotal,
};

/// Size limit of a question.
const MAX_ASK_BYTES: usize = 4 << 10;

/// Size limit of an answer: the most points, and the most series with the longest names.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Number of consumers if a question names none.
const DEFAULT_CONSUMERS: u32 = 10;

/// The service over the history of this process.
struct UsageApi(UsageHandle);

/// Returns the service of one worker on a port, by its name.
pub(crate) fn routes(usage: &UsageHandle, worker: &ServiceContext) -> Vec<(&'static str, AddRoutes)> {
    let mut routes: Vec<(&'static str, AddRoutes)> = Vec::new();
    if worker.serves_calls {
        let service = UsageApi::server(usage.clone());
        let add = |routes: Routes| routes.add_service(service);
        routes.push((usage_service_server::SERVICE_NAME, Box::new(add)));
    }
    routes
}

impl UsageApi {
    /// The service, bounded and ready to be served.
    fn server(usage: UsageHandle) -> UsageServiceServer<Self> {
        UsageServiceServer::new(Self(usage))
            .max_decoding_message_size(MAX_ASK_BYTES)
            .max_encoding_message_size(MAX_ANSWER_BYTES)
    }
}

#[tonic::async_trait]
impl UsageService for UsageApi {
    async fn get_usage(
        &self,
        mut request: Request<GetUsageRequest>,
    ) -> Result<Response<GetUsageResponse>, Status> {
        let context = context(&mut request);
        let GetUsageRequest { strategy, resource_pattern, outcome, from, to, step } = request.into_inner();
        let ask = UsageAsk {
            strategy,
            pattern: resource_pattern,
            outcome,
            from: from.map(|from| micros("from", &from)).transpose()?,
            to: to.map(|to| micros("to", &to)).transpose()?,
            step: step
                .map(|step| span_micros("step", &step, "it must be at least 1s"))
                .transpose()
                .map_err(invalid)?,
        };
        Ok(Response::new(usage(self.0.totals(Rights::from_context(&context), ask).await.map_err(failed)?)))
    }

    async fn top_consumers(
        &self,
        mut request: Request<TopConsumersRequest>,
    ) -> Result<Response<TopConsumersResponse>, Status> {
        let context = context(&mut request);
        let TopConsumersRequest { strategy, outcome, window, n } = request.into_inner();
        let ask = ConsumersAsk {
            strategy: (!strategy.is_empty()).then_some(strategy),
            allowed: allowed(outcome).map_err(invalid)?,
            window: self::window(window).map_err(invalid)?,
            n: count(n.unwrap_or(DEFAULT_CONSUMERS)).map_err(invalid)?,
        };
        Ok(Response::new(consumers(
            self.0.consumers(Rights::from_context(&context), ask).await.map_err(failed)?,
        )))
    }

    async fn list_nodes(
        &self,
        mut request: Request<ListNodesRequest>,
    ) -> Result<Response<ListNodesResponse>, Status> {
        let context = context(&mut request);
        Ok(Response::new(nodes(self.0.nodes(Rights::from_context(&context)).await.map_err(failed)?)))
    }
}

/// Messages of the nodes.
fn nodes(answer: NodesAnswer) -> ListNodesResponse {
    let one = |node: history::DeploymentNode| DeploymentNode {
        name: node.name,
        address: node.address,
        state: match node.state {
            history::NodePhase::Serving => NodeState::Serving,
            history::NodePhase::Degraded => NodeState::Degraded,
            history::NodePhase::NotReady => NodeState::NotReady,
            history::NodePhase::Draining => NodeState::Draining,
            history::NodePhase::Ended => NodeState::Ended,
        }
        .into(),
        ended_at: node.ended.map(timestamp),
        version: node.version,
        started_at: Some(timestamp(node.started)),
        files_read_at: Some(timestamp(node.files_read)),
        files: node.files,
        control_version: node.control,
    };
    let incomplete = answer.incomplete.unwrap_or_default();
    ListNodesResponse { nodes: answer.nodes.into_iter().map(one).collect(), incomplete }
}

fn allowed(outcome: i32) -> Result<Option<bool>, InvalidField> {
    match ConsumerOutcome::try_from(outcome) {
        Ok(ConsumerOutcome::Unspecified) => Ok(None),
        Ok(ConsumerOutcome::Allowed) => Ok(Some(true)),
        Ok(ConsumerOutcome::Denied) => Ok(Some(false)),
        Err(_) => Err(InvalidField {
            field: "outcome",
            value: outcome.to_string(),
            bound: "it must be 0 to 2: ALLOWED, DENIED, or 0 for both".to_owned(),
        }),
    }
}

fn window(window: Option<Duration>) -> Result<ConsumersWindow, InvalidField> {
    const BOUND: &str = "it must be 60s or 3600s";
    let window = window.map(|window| span_micros("window", &window, BOUND)).transpose()?;
    match window.map(|window| window.0 / 1_000) {
        None | Some(60_000) => Ok(ConsumersWindow::Minute),
        Some(3_600_000) => Ok(ConsumersWindow::Hour),
        Some(ms) => Err(InvalidField { field: "window", value: format!("{ms}ms"), bound: BOUND.to_owned() }),
    }
}

fn count(n: u32) -> Result<usize, InvalidField> {
    let count = n as usize;
    if (1..=MAX_TALLIES).contains(&count) {
        return Ok(count);
    }
    Err(InvalidField { field: "n", value: n.to_string(), bound: format!("it must be 1 to {MAX_TALLIES}") })
}

fn usage(answer: UsageAnswer) -> GetUsageResponse {
    let UsageAnswer { rows, from, to, step, resolution, nodes, incomplete } = answer;
    GetUsageResponse {
        series: rows.into_iter().map(series).collect(),
        from: Some(timestamp(from)),
        to: Some(timestamp(to)),
        step: Some(duration(Micros::from_secs(step))),
        resolution: Some(duration(Micros::from_secs(resolution.seconds()))),
        nodes,
        incomplete: incomplete.unwrap_or_default(),
    }
}

fn series(row: UsageRow) -> UsageSeries {
    let UsageRow { strategy, pattern, outcome, total, points, costs } = row;
    let mut by_time: BTreeMap<u64, UsagePoint> = BTreeMap::new();
    for (at, UsageTotal { calls, cost }) in points {
        let point = UsagePoint { start: Some(timestamp(at)), calls, cost, ..UsagePoint::default() };
        by_time.insert(at, point);
    }
    for UsageCost { name, points, .. } in &costs {
        for &(at, units) in points {
            let empty = || UsagePoint { start: Some(timestamp(at)), ..UsagePoint::default() };
            by_time.entry(at).or_insert_with(empty).costs.insert(name.to_string(), units);
        }
    }
    let units = costs.iter().filter(|cost| !cost.unit.is_empty());
    UsageSeries {
        strategy: strategy.to_string(),
        resource_pattern: pattern.to_string(),
        outcome: outcome.to_string(),
        calls: total.calls,
        cost: total.cost,
        points: by_time.into_values().collect(),
        units: units.map(|cost| (cost.name.to_string(), cost.unit.to_string())).collect(),
        costs: costs.into_iter().map(|cost| (cost.name.to_string(), cost.total)).collect(),
    }
}

fn consumers(answer: ConsumersAnswer) -> TopConsumersResponse {
    let ConsumersAnswer { consumers, missing, rate, calls, nodes, incomplete } = answer;
    let one = |(tally, sampling_error): (ConsumerTally<_>, u64)| {
        let key: ConsumerKey<std::sync::Arc<str>> = tally.key;
        ConsumerCalls {
            consumer: key.consumer.into(),
            strategy: key.strategy.to_string(),
            allowed: key.allowed,
            calls: tally.count,
            error: tally.error,
            sampling_error,
        }
    };
    TopConsumersResponse {
        consumers: consumers.into_iter().map(one).collect(),
        missing_at_most: missing,
        sample: rate,
        calls,
        nodes,
        incomplete: incomplete.unwrap_or_default(),
    }
}

/// Converts a timestamp, rounded down to the microsecond.
fn micros(field: &'static str, at: &Timestamp) -> Result<Micros, Status> {
    const YEAR_9999: u64 = 253_402_300_800;
    let nanos = u64::try_from(at.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    let seconds = u64::try_from(at.seconds).ok().filter(|seconds| *seconds < YEAR_9999);
    match seconds.zip(nanos) {
        Some((seconds, nanos)) => Ok(Micros(seconds * 1_000_000 + nanos / 1_000)),
        None => Err(invalid(InvalidField {
            field,
            value: shown(&format!("{} s and {} ns", at.seconds, at.nanos)),
            bound: "it must be a time from 1970 to the year 9999".to_owned(),
        })),
    }
}

fn timestamp(second: u64) -> Timestamp {
    Timestamp { seconds: i64::try_from(second).unwrap_or(i64::MAX), nanos: 0 }
}

fn invalid(error: InvalidField) -> Status {
    status::invalid(&error)
}

fn failed(error: UsageError) -> Status {
    match error {
        UsageError::Refused(error) => status::refused(error),
        UsageError::Invalid(error) => invalid(error),
        error @ UsageError::Busy => status::busy(error.to_string()),
    }
}
