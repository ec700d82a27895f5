//! Calls of `AdminService` and `LeaseAdminService`.

use weir_proto::v1::{
    ListLeasesRequest, ListLeasesResponse, ReleaseLeasesRequest, ReleaseLeasesResponse, ResetRequest,
    ResetResponse,
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
}
