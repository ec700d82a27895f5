//! Calls of `ConcurrencyService` and `LeaseAdminService`.

use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::lease_admin_service_client::LeaseAdminServiceClient;
use weir_proto::v1::{
    AcquireRequest, AcquireResponse, ListLeasesRequest, ListLeasesResponse, ReleaseLeasesRequest,
    ReleaseLeasesResponse, ReleaseRequest, ReleaseResponse, RenewRequest, RenewResponse,
};

use super::Client;
use super::channel::AccessChannel;

impl Client {
    fn leases(&self) -> ConcurrencyServiceClient<AccessChannel> {
        ConcurrencyServiceClient::new(self.channel.clone())
    }

    fn lease_operators(&self) -> LeaseAdminServiceClient<AccessChannel> {
        LeaseAdminServiceClient::new(self.channel.clone())
    }
}

calls! {
    /// Takes permits.
    acquire(AcquireRequest) -> AcquireResponse = leases.acquire;
    /// Renews a lease.
    renew(RenewRequest) -> RenewResponse = leases.renew;
    /// Gives permits back.
    release(ReleaseRequest) -> ReleaseResponse = leases.release;
    /// Lists a page of leases.
    list_leases(ListLeasesRequest) -> ListLeasesResponse = lease_operators.list_leases;
    /// Releases leases for their holders.
    release_leases(ReleaseLeasesRequest) -> ReleaseLeasesResponse = lease_operators.release_leases;
}
