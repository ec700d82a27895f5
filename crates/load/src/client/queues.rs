//! Calls of `QueueService` and `QueueAdminService`.

use weir_proto::v1::queue_admin_service_client::QueueAdminServiceClient;
use weir_proto::v1::queue_service_client::QueueServiceClient;
use weir_proto::v1::{
    AckRequest, AckResponse, BrowseRequest, BrowseResponse, EnqueueRequest, EnqueueResponse, ExtendRequest,
    ExtendResponse, NackRequest, NackResponse, OutcomesRequest, OutcomesResponse, PurgeRequest,
    PurgeResponse, RedriveRequest, RedriveResponse, StatsRequest, StatsResponse, TakeRequest, TakeResponse,
};

use super::channel::AccessChannel;
use super::{Client, ClientError, within};

/// Size limit of a message about queues.
const MAX_QUEUE_MESSAGE: usize = 7 << 20;

impl Client {
    fn queues(&self) -> QueueServiceClient<AccessChannel> {
        QueueServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_QUEUE_MESSAGE)
    }

    fn queue_operators(&self) -> QueueAdminServiceClient<AccessChannel> {
        QueueAdminServiceClient::new(self.channel.clone())
    }

    /// Puts items into a queue.
    pub async fn enqueue(&mut self, request: EnqueueRequest) -> Result<EnqueueResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queues().enqueue(request)).await;
        self.answered(answer)
    }

    /// Takes items out of a queue.
    pub async fn take(&mut self, request: TakeRequest) -> Result<TakeResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queues().take(request)).await;
        self.answered(answer)
    }

    /// Acks items.
    pub async fn ack(&mut self, request: AckRequest) -> Result<AckResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queues().ack(request)).await;
        self.answered(answer)
    }

    /// Nacks items.
    pub async fn nack(&mut self, request: NackRequest) -> Result<NackResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queues().nack(request)).await;
        self.answered(answer)
    }

    /// Gives the workers of items more time.
    pub async fn extend(&mut self, request: ExtendRequest) -> Result<ExtendResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queues().extend(request)).await;
        self.answered(answer)
    }

    /// Gets the statistics of a queue.
    pub async fn queue_stats(&mut self, request: StatsRequest) -> Result<StatsResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queues().stats(request)).await;
        self.answered(answer)
    }

    /// Shows items of a queue.
    pub async fn browse(&mut self, request: BrowseRequest) -> Result<BrowseResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queues().browse(request)).await;
        self.answered(answer)
    }

    /// Gets a page of outcomes.
    pub async fn outcomes(&mut self, request: OutcomesRequest) -> Result<OutcomesResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queues().outcomes(request)).await;
        self.answered(answer)
    }

    /// Brings dead letters back.
    pub async fn redrive(&mut self, request: RedriveRequest) -> Result<RedriveResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queue_operators().redrive(request)).await;
        self.answered(answer)
    }

    /// Empties a queue.
    pub async fn purge(&mut self, request: PurgeRequest) -> Result<PurgeResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.queue_operators().purge(request)).await;
        self.answered(answer)
    }
}
