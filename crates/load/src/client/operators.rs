//! Calls of `AdminService`, `LeaseAdminService` and `QueueAdminService`.

use weir_proto::v1::{
    ListLeasesRequest, ListLeasesResponse, PurgeRequest, PurgeResponse, RedriveRequest, RedriveResponse,
    ReleaseLeasesRequest, ReleaseLeasesResponse, ResetRequest, ResetResponse,
};

use super::{Client, ClientError, within};

impl Client {
    /// Makes limits full again.
    pub async fn reset(&mut self, request: ResetRequest) -> Result<ResetResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.admin.reset(request)).await;
        self.answered(answer)
    }

    /// Lists a page of leases.
    pub async fn list_leases(
        &mut self,
        request: ListLeasesRequest,
    ) -> Result<ListLeasesResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.lease_admin.list_leases(request)).await;
        self.answered(answer)
    }

    /// Releases leases for their holders.
    pub async fn release_leases(
        &mut self,
        request: ReleaseLeasesRequest,
    ) -> Result<ReleaseLeasesResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.lease_admin.release_leases(request)).await;
        self.answered(answer)
    }

    /// Brings dead letters back.
    pub async fn redrive(&mut self, request: RedriveRequest) -> Result<RedriveResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queue_admin.redrive(request)).await;
        self.answered(answer)
    }

    /// Empties a queue.
    pub async fn purge(&mut self, request: PurgeRequest) -> Result<PurgeResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queue_admin.purge(request)).await;
        self.answered(answer)
    }
}
