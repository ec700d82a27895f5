//! Outcomes of the items of queues.

use weir_proto::v1::{OutcomesRequest, OutcomesResponse};

use super::{Client, ClientError, within};

impl Client {
    /// Gets a page of outcomes.
    pub async fn outcomes(&mut self, request: OutcomesRequest) -> Result<OutcomesResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queues.outcomes(request)).await;
        self.answered(answer)
    }
}
