//! Calls of `QueueService` and `QueueAdminService`.

use weir_proto::v1::queue_admin_service_client::QueueAdminServiceClient;
use weir_proto::v1::queue_service_client::QueueServiceClient;
use weir_proto::v1::{
    AckRequest, AckResponse, BrowseRequest, BrowseResponse, EnqueueRequest, EnqueueResponse, ExtendRequest,
    ExtendResponse, NackRequest, NackResponse, OutcomesRequest, OutcomesResponse, PurgeRequest,
    PurgeResponse, RedriveRequest, RedriveResponse, StatsRequest, StatsResponse, TakeRequest, TakeResponse,
};

use super::Client;
use super::channel::AccessChannel;

/// Size limit of a message about queues.
const MAX_QUEUE_MESSAGE: usize = 7 << 20;

impl Client {
    fn queues(&self) -> QueueServiceClient<AccessChannel> {
        QueueServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_QUEUE_MESSAGE)
    }

    fn queue_operators(&self) -> QueueAdminServiceClient<AccessChannel> {
        QueueAdminServiceClient::new(self.channel.clone())
    }
}

calls! {
    /// Puts items into a queue.
    enqueue(EnqueueRequest) -> EnqueueResponse = queues.enqueue;
    /// Takes items out of a queue.
    take(TakeRequest) -> TakeResponse = queues.take;
    /// Acks items.
    ack(AckRequest) -> AckResponse = queues.ack;
    /// Nacks items.
    nack(NackRequest) -> NackResponse = queues.nack;
    /// Gives the workers of items more time.
    extend(ExtendRequest) -> ExtendResponse = queues.extend;
    /// Gets the statistics of a queue.
    queue_stats(StatsRequest) -> StatsResponse = queues.stats;
    /// Shows items of a queue.
    browse(BrowseRequest) -> BrowseResponse = queues.browse;
    /// Gets a page of outcomes.
    outcomes(OutcomesRequest) -> OutcomesResponse = queues.outcomes;
    /// Brings dead letters back.
    redrive(RedriveRequest) -> RedriveResponse = queue_operators.redrive;
    /// Empties a queue.
    purge(PurgeRequest) -> PurgeResponse = queue_operators.purge;
}
