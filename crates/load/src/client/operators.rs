//! Calls of `AdminService`.

use weir_proto::v1::{ResetRequest, ResetResponse};

use super::{Client, ClientError, within};

impl Client {
    /// Makes limits full again.
    pub async fn reset(&mut self, request: ResetRequest) -> Result<ResetResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.admin.reset(request)).await;
        self.answered(answer)
    }
}
