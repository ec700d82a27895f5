//! Usage: totals by time, and the consumers that call most.
//!
//! Workers count at the one event of a decision, in counters of their own (`telemetry/totals.rs` of the node). A thread reads them
//! every second and keeps what has changed: by second for an hour, by minute for a day, by hour for 30 days. Questions
//! are answered on this thread, so they never delay a decision.
//!
//! ```text
//!   workers ── counters ──┐ each second            ┌── resolutions.rs three resolutions, at most 64 MiB
//!                         ├── collect.rs ── series ┤
//!   workers ── sketches ──┘ each ten seconds       └── consumers.rs the last minute, the last hour
//!
//!   UsageService, /ui ── ask ──> query.rs
//! ```

mod collect;
mod consumers;
mod exchange;
mod latency;
mod level;
mod nodes;
mod pace;
mod query;
mod resolutions;
mod series;
mod thread;
mod timeseries;

use tokio::sync::{mpsc, oneshot};
use weir_config::AccessRight;
use weir_node::access::{Refused, Rights};
use weir_node::limiter::InvalidField;

pub(crate) use self::consumers::{ConsumersAnswer, ConsumersAsk, ConsumersWindow};
pub(crate) use self::latency::LatencyPoint;
pub(crate) use self::nodes::{DeploymentNode, NodePhase, NodesAnswer, OwnNode};
pub(crate) use self::query::{UsageAnswer, UsageAsk, UsageCost, UsageRow};
pub(crate) use self::resolutions::UsageTotal;
pub(crate) use self::thread::UsageThread;
use crate::consumers::MAX_TALLIES;

/// Most waiting questions.
const MAX_WAITING: usize = 32;

/// Handle of the usage thread. Clones ask the same thread.
#[derive(Clone, Debug)]
pub(crate) struct UsageHandle(mpsc::Sender<UsageQuestion>);

/// Questions, each with the sender for its answer.
#[derive(Debug)]
enum UsageQuestion {
    Totals(UsageAsk, oneshot::Sender<Result<UsageAnswer, InvalidField>>),
    Latency(oneshot::Sender<(u64, Vec<LatencyPoint>)>),
    Consumers(ConsumersAsk, oneshot::Sender<ConsumersAnswer>),
    Nodes(oneshot::Sender<NodesAnswer>),
}

/// Errors of questions about usage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UsageError {
    /// The caller has no right to usage.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A field breaks its bound.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// The queue of questions is full, or the service is ending.
    #[error("{MAX_WAITING} questions about usage wait for their answers; try again later")]
    Busy,
}

impl UsageHandle {
    /// Totals of a span of time that the caller may see.
    pub(crate) async fn totals(&self, rights: Rights<'_>, ask: UsageAsk) -> Result<UsageAnswer, UsageError> {
        rights.check_any(AccessRight::Usage)?;
        let mut answer = self.ask(|reply| UsageQuestion::Totals(ask, reply)).await??;
        answer.rows.retain(|row| rights.may_show(&row.strategy, Some(&row.pattern), None));
        Ok(answer)
    }

    /// The consumers that call most, of those that the caller may see.
    pub(crate) async fn consumers(
        &self,
        rights: Rights<'_>,
        ask: ConsumersAsk,
    ) -> Result<ConsumersAnswer, UsageError> {
        rights.check_any(AccessRight::Usage)?;
        if rights.is_all() {
            return self.ask(|reply| UsageQuestion::Consumers(ask, reply)).await;
        }
        let most = ask.n;
        let all = ConsumersAsk { n: MAX_TALLIES, ..ask };
        let mut answer = self.ask(|reply| UsageQuestion::Consumers(all, reply)).await?;
        answer
            .consumers
            .retain(|(tally, _)| rights.may_show(&tally.key.strategy, None, Some(&tally.key.consumer)));
        answer.calls = answer.consumers.iter().map(|(tally, _)| tally.count).sum();
        answer.consumers.truncate(most);
        Ok(answer)
    }

    /// The nodes of the deployment.
    pub(crate) async fn nodes(&self, rights: Rights<'_>) -> Result<NodesAnswer, UsageError> {
        rights.check_any(AccessRight::Usage)?;
        self.ask(UsageQuestion::Nodes).await
    }

    /// The time in seconds, and the decision times of this node in the last hour, by minute.
    pub(crate) async fn latency(&self) -> Result<(u64, Vec<LatencyPoint>), UsageError> {
        self.ask(UsageQuestion::Latency).await
    }

    async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> UsageQuestion,
    ) -> Result<T, UsageError> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(question(reply)).map_err(|_| UsageError::Busy)?;
        answer.await.map_err(|_| UsageError::Busy)
    }
}
