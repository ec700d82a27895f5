//! Calls of `UsageService`.

use weir_proto::v1::{
    GetUsageRequest, GetUsageResponse, ListNodesRequest, ListNodesResponse, TopConsumersRequest,
    TopConsumersResponse,
};

use super::{Client, ClientError, within};

impl Client {
    /// Gets the usage in a span of time.
    pub async fn get_usage(&mut self, request: GetUsageRequest) -> Result<GetUsageResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.usage.get_usage(request)).await;
        self.answered(answer)
    }

    /// The consumers that call most.
    pub async fn top_consumers(
        &mut self,
        request: TopConsumersRequest,
    ) -> Result<TopConsumersResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.usage.top_consumers(request)).await;
        self.answered(answer)
    }

    /// The nodes of the deployment.
    pub async fn list_nodes(&mut self) -> Result<ListNodesResponse, ClientError> {
        let request = within(self.timeout, ListNodesRequest {});
        let answer = tokio::time::timeout(self.timeout, self.usage.list_nodes(request)).await;
        self.answered(answer)
    }
}
