//! What got through: totals that equal what callers counted themselves, and the consumers that call most.

mod consumers;
mod costs;
mod former;
mod nodes;
mod outcomes;
pub(crate) mod rights;
mod roster;
mod top;
mod totals;

use std::collections::BTreeMap;

use tonic::transport::Channel;
use weir_proto::v1::usage_service_client::UsageServiceClient;
use weir_proto::v1::{GetUsageRequest, GetUsageResponse};

use crate::support::server::Server;

/// Calls and cost by strategy, pattern and outcome.
type Totals = BTreeMap<(String, String, String), (u64, u64)>;

async fn usage_of(server: &Server) -> UsageServiceClient<Channel> {
    UsageServiceClient::new(server.channel().await).max_decoding_message_size(16 << 20)
}

async fn get(client: &mut UsageServiceClient<Channel>, request: GetUsageRequest) -> GetUsageResponse {
    client.get_usage(request).await.unwrap().into_inner()
}

/// The totals of an answer, which are the sums of its points.
fn totals(answer: &GetUsageResponse) -> Totals {
    let total = |series: &weir_proto::v1::UsageSeries| {
        let sum = series.points.iter().fold((0, 0), |sum, point| (sum.0 + point.calls, sum.1 + point.cost));
        assert_eq!(sum, (series.calls, series.cost), "{series:?}");
        ((series.strategy.clone(), series.resource_pattern.clone(), series.outcome.clone()), sum)
    };
    answer.series.iter().map(total).collect()
}

fn key(strategy: &str, pattern: &str, outcome: &str) -> (String, String, String) {
    (strategy.to_owned(), pattern.to_owned(), outcome.to_owned())
}
