//! Calls of `weir control` and `weir reload`.

use tonic::Streaming;
use weir_proto::v1::control_service_client::ControlServiceClient;
use weir_proto::v1::{
    ControlEntry, DeleteEntryRequest, EntryChange, FindChangeRequest, FindChangeResponse, LiftBanRequest,
    LiftBanResponse, ListBansRequest, ListBansResponse, ListChangesRequest, ListChangesResponse,
    ListEntriesRequest, ListEntriesResponse, PutAccessRequest, PutManyRequest, PutManyResponse,
    PutOverrideRequest, PutStrategyRequest, ReloadRequest, ReloadResponse, WatchEntriesRequest,
    WatchEntriesResponse,
};

use super::channel::AccessChannel;
use super::{Client, ClientError, name, within};

/// Size limit of an answer: the most entries of the longest kind.
const MAX_CONTROL_BYTES: usize = 256 << 20;

impl Client {
    fn control(&self) -> ControlServiceClient<AccessChannel> {
        ControlServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_CONTROL_BYTES)
    }

    /// Gives some consumers other numbers.
    pub async fn put_override(&mut self, request: PutOverrideRequest) -> Result<EntryChange, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.control().put_override(request)).await;
        Ok(self.answered(answer)?.change.unwrap_or_default())
    }

    /// Denies consumers, or lets them through.
    pub async fn put_access(&mut self, request: PutAccessRequest) -> Result<EntryChange, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.control().put_access(request)).await;
        Ok(self.answered(answer)?.change.unwrap_or_default())
    }

    /// Gives a strategy other numbers.
    pub async fn put_strategy(&mut self, request: PutStrategyRequest) -> Result<EntryChange, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.control().put_strategy(request)).await;
        Ok(self.answered(answer)?.change.unwrap_or_default())
    }

    /// Makes several changes as one.
    pub async fn put_many(&mut self, request: PutManyRequest) -> Result<PutManyResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.control().put_many(request)).await;
        self.answered(answer)
    }

    /// Finds out if a change was made.
    pub async fn find_change(
        &mut self,
        request: FindChangeRequest,
    ) -> Result<FindChangeResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.control().find_change(request)).await;
        self.answered(answer)
    }

    /// Removes an entry of live control.
    pub async fn delete_entry(&mut self, request: DeleteEntryRequest) -> Result<EntryChange, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.control().delete_entry(request)).await;
        Ok(self.answered(answer)?.change.unwrap_or_default())
    }

    /// The entries of live control.
    pub async fn list_entries(&mut self) -> Result<ListEntriesResponse, ClientError> {
        let request = within(self.timeout, ListEntriesRequest {});
        let answer = tokio::time::timeout(self.timeout, self.control().list_entries(request)).await;
        self.answered(answer)
    }

    /// The last changes by live control.
    pub async fn control_history(
        &mut self,
        request: ListChangesRequest,
    ) -> Result<ListChangesResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.control().list_changes(request)).await;
        self.answered(answer)
    }

    /// A page of the bans.
    pub async fn list_bans(&mut self, request: ListBansRequest) -> Result<ListBansResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.control().list_bans(request)).await;
        self.answered(answer)
    }

    /// Ends a ban.
    pub async fn lift_ban(&mut self, request: LiftBanRequest) -> Result<LiftBanResponse, ClientError> {
        let request = within(self.timeout, request);
        let answer = tokio::time::timeout(self.timeout, self.control().lift_ban(request)).await;
        self.answered(answer)
    }

    /// Reads all files of the server again.
    pub async fn reload(&mut self) -> Result<ReloadResponse, ClientError> {
        let request = within(self.timeout, ReloadRequest {});
        let answer = tokio::time::timeout(self.timeout, self.control().reload(request)).await;
        self.answered(answer)
    }

    /// Begins a watch of the entries, which has no deadline.
    pub async fn watch_entries(&mut self) -> Result<Streaming<WatchEntriesResponse>, ClientError> {
        let answer =
            tokio::time::timeout(self.timeout, self.control().watch_entries(WatchEntriesRequest {})).await;
        self.answered(answer)
    }

    /// The next entry of a watch; `None` once the server has ended it.
    pub async fn next_entry(
        watch: &mut Streaming<WatchEntriesResponse>,
    ) -> Result<Option<ControlEntry>, ClientError> {
        let message = watch.message().await.map_err(|status| ClientError::Refused {
            code: name(status.code()),
            message: status.message().to_owned(),
        })?;
        Ok(message.map(|message| message.entry.unwrap_or_default()))
    }
}
