//! Calls of `UsageService`.

use weir_proto::v1::usage_service_client::UsageServiceClient;
use weir_proto::v1::{
    GetUsageRequest, GetUsageResponse, ListNodesRequest, ListNodesResponse, TopConsumersRequest,
    TopConsumersResponse,
};

use super::channel::AccessChannel;
use super::{Client, ClientError, within};

/// Size limit of an answer.
const MAX_USAGE_BYTES: usize = 16 << 20;

impl Client {
    fn usage(&self) -> UsageServiceClient<AccessChannel> {
        UsageServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_USAGE_BYTES)
    }

    /// The nodes of the deployment.
    pub async fn list_nodes(&mut self) -> Result<ListNodesResponse, ClientError> {
        let request = within(self.timeout, ListNodesRequest {});
        let answer = tokio::time::timeout(self.timeout, self.usage().list_nodes(request)).await;
        self.answered(answer)
    }
}

calls! {
    /// Gets the usage in a span of time.
    get_usage(GetUsageRequest) -> GetUsageResponse = usage.get_usage;
    /// The consumers that call most.
    top_consumers(TopConsumersRequest) -> TopConsumersResponse = usage.top_consumers;
}
