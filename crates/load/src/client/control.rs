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

    /// The entries of live control.
    pub async fn list_entries(&mut self) -> Result<ListEntriesResponse, ClientError> {
        let request = within(self.timeout, ListEntriesRequest {});
        let answer = tokio::time::timeout(self.timeout, self.control().list_entries(request)).await;
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

calls! {
    /// Gives some consumers other numbers.
    put_override(PutOverrideRequest) -> EntryChange = control.put_override, change;
    /// Denies consumers, or lets them through.
    put_access(PutAccessRequest) -> EntryChange = control.put_access, change;
    /// Gives a strategy other numbers.
    put_strategy(PutStrategyRequest) -> EntryChange = control.put_strategy, change;
    /// Makes several changes as one.
    put_many(PutManyRequest) -> PutManyResponse = control.put_many;
    /// Finds out if a change was made.
    find_change(FindChangeRequest) -> FindChangeResponse = control.find_change;
    /// Removes an entry of live control.
    delete_entry(DeleteEntryRequest) -> EntryChange = control.delete_entry, change;
    /// The last changes by live control.
    control_history(ListChangesRequest) -> ListChangesResponse = control.list_changes;
    /// A page of the bans.
    list_bans(ListBansRequest) -> ListBansResponse = control.list_bans;
    /// Ends a ban.
    lift_ban(LiftBanRequest) -> LiftBanResponse = control.lift_ban;
}
