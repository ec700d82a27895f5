//! Calls of `ConcurrencyService` and `LeaseAdminService`.

use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::lease_admin_service_client::LeaseAdminServiceClient;
use weir_proto::v1::{
    AcquireRequest, AcquireResponse, ListLeasesRequest, ListLeasesResponse, ReleaseLeasesRequest,
    ReleaseLeasesResponse, ReleaseRequest, ReleaseResponse, RenewRequest, RenewResponse,
};

use super::channel::AccessChannel;
use super::{Client, ClientError, within};

impl Client {
    fn leases(&self) -> ConcurrencyServiceClient<AccessChannel> {
        ConcurrencyServiceClient::new(self.channel.clone())
    }

    fn lease_operators(&self) -> LeaseAdminServiceClient<AccessChannel> {
        LeaseAdminServiceClient::new(self.channel.clone())
    }

    /// Takes permits.
    pub async fn acquire(&mut self, request: AcquireRequest) -> Result<AcquireResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.leases().acquire(request)).await;
        self.answered(answer)
    }

    /// Renews a lease.
    pub async fn renew(&mut self, request: RenewRequest) -> Result<RenewResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.leases().renew(request)).await;
        self.answered(answer)
    }

    /// Gives permits back.
    pub async fn release(&mut self, request: ReleaseRequest) -> Result<ReleaseResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.leases().release(request)).await;
        self.answered(answer)
    }

    /// Lists a page of leases.
    pub async fn list_leases(
        &mut self,
        request: ListLeasesRequest,
    ) -> Result<ListLeasesResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.lease_operators().list_leases(request)).await;
        self.answered(answer)
    }

    /// Releases leases for their holders.
    pub async fn release_leases(
        &mut self,
        request: ReleaseLeasesRequest,
    ) -> Result<ReleaseLeasesResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.lease_operators().release_leases(request)).await;
        self.answered(answer)
    }
}
