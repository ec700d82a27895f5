//! Questions to `UsageService`.

use tonic::transport::Channel;
use weir_proto::v1::usage_service_client::UsageServiceClient;
use weir_proto::v1::{GetUsageRequest, GetUsageResponse};

use super::server::Server;

pub(crate) async fn usage_of(server: &Server) -> UsageServiceClient<Channel> {
    UsageServiceClient::new(server.channel().await).max_decoding_message_size(16 << 20)
}

pub(crate) async fn get(
    client: &mut UsageServiceClient<Channel>,
    request: GetUsageRequest,
) -> GetUsageResponse {
    client.get_usage(request).await.unwrap().into_inner()
}
