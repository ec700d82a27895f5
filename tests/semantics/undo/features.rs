//! Methods of features that `server.admin_service` turns on.

use tonic::Code;
use weir_proto::v1::lease_admin_service_client::LeaseAdminServiceClient;
use weir_proto::v1::queue_admin_service_client::QueueAdminServiceClient;
use weir_proto::v1::{ListLeasesRequest, PurgeRequest};

use super::{is_refused, ready};
use crate::support::stores;

#[tokio::test]
async fn methods_of_operators_are_off_without_the_setting() {
    let server = ready(stores::memory(), false);
    let mut leases = LeaseAdminServiceClient::new(server.channel().await);
    let status = leases.list_leases(ListLeasesRequest::default()).await.unwrap_err();
    let wanted = "there is no method `/weir.v1.LeaseAdminService/ListLeases`; LeaseAdminService is there with `server.admin_service: true`";
    is_refused(status, Code::Unimplemented, wanted);
    let mut queues = QueueAdminServiceClient::new(server.channel().await);
    let status = queues.purge(PurgeRequest::default()).await.unwrap_err();
    let wanted = "there is no method `/weir.v1.QueueAdminService/Purge`; QueueAdminService is there with `server.admin_service: true`";
    is_refused(status, Code::Unimplemented, wanted);
}
