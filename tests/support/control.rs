//! A node with live control in this process, and what it is asked.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use tonic::Status;
use tonic::transport::Channel;
use weir_config::Config;
use weir_proto::v1::control_service_client::ControlServiceClient;
use weir_proto::v1::{
    AccessList, ChangeOptions, ControlAccess, ControlOverride, ControlStrategy, DeleteEntryRequest,
    EntryChange, EntryVersion, ListEntriesRequest, ListEntriesResponse, PutAccessRequest, PutOverrideRequest,
    PutStrategyRequest, ShouldAllowRequest, ShouldAllowResponse, delete_entry_request,
};

use super::scratch;
use super::server::{Server, ask};

/// The limit `l` of `s` for resource `x` is 3 an hour, `jobs` has 4 permits.
pub(crate) const FILE: &str = "
server: { control: true, admin_service: true, audit_file: audit.jsonl }
control: { cache_file: entries }
strategies:
  s: { limits: [{ name: l, per: [consumer], fixed_window: { limit: 3, window: 1h } }] }
  other: { limits: [{ name: l, per: [resource], token_bucket: { rate: 1/s, burst: 5 } }] }
  jobs: { concurrency: { limit: 4, per: [consumer], ttl: 30s } }
resources: [{ match: x, strategy: s }, { match: 'y/*', strategy: other }]
";

/// A node with live control on the memory store.
pub(crate) struct Node {
    pub(crate) folder: TempDir,
    pub(crate) server: Server,
}

impl Node {
    pub(crate) fn start() -> Self {
        let folder = scratch::dir("control-");
        fs::write(folder.path().join("weir.yaml"), FILE).unwrap();
        Self::on(folder)
    }

    pub(crate) fn on(folder: TempDir) -> Self {
        Self { server: Server::ready(Self::config(&folder)), folder }
    }

    pub(crate) fn config(folder: &TempDir) -> Config {
        Config::load(folder.path().join("weir.yaml"), &weir::features::overrides()).unwrap()
    }

    /// The same files under a new process.
    pub(crate) fn restarted(mut self) -> Self {
        self.server.stop();
        self.server.ended().unwrap();
        Self::on(self.folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, text: &str) {
        fs::write(self.path("weir.yaml"), text).unwrap();
    }

    pub(crate) async fn control(&self) -> ControlServiceClient<Channel> {
        ControlServiceClient::new(self.server.channel().await)
    }

    pub(crate) async fn put_override(
        &self,
        one: ControlOverride,
        options: ChangeOptions,
    ) -> Result<EntryChange, Status> {
        let request = PutOverrideRequest { r#override: Some(one), options: Some(options) };
        Ok(self.control().await.put_override(request).await?.into_inner().change.unwrap())
    }

    pub(crate) async fn put_access(
        &self,
        one: ControlAccess,
        options: ChangeOptions,
    ) -> Result<EntryChange, Status> {
        let request = PutAccessRequest { access: Some(one), options: Some(options) };
        Ok(self.control().await.put_access(request).await?.into_inner().change.unwrap())
    }

    pub(crate) async fn put_strategy(
        &self,
        one: ControlStrategy,
        options: ChangeOptions,
    ) -> Result<EntryChange, Status> {
        let request = PutStrategyRequest { strategy: Some(one), options: Some(options) };
        Ok(self.control().await.put_strategy(request).await?.into_inner().change.unwrap())
    }

    pub(crate) async fn delete(
        &self,
        entry: delete_entry_request::Entry,
        options: ChangeOptions,
    ) -> Result<EntryChange, Status> {
        let request = DeleteEntryRequest { entry: Some(entry), options: Some(options) };
        Ok(self.control().await.delete_entry(request).await?.into_inner().change.unwrap())
    }

    pub(crate) async fn list(&self) -> ListEntriesResponse {
        self.control().await.list_entries(ListEntriesRequest {}).await.unwrap().into_inner()
    }

    pub(crate) async fn asks(&self, consumer: &str, cost: u64) -> ShouldAllowResponse {
        let request = ShouldAllowRequest { cost: Some(cost), ..ask("x", consumer) };
        self.server.client().await.should_allow(request).await.unwrap().into_inner()
    }

    pub(crate) async fn limit(&self, consumer: &str) -> u64 {
        self.asks(consumer, 0).await.limit.unwrap_or_default()
    }

    pub(crate) fn audit(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.path("audit.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub(crate) fn numbers(all: &[(&str, &str)]) -> HashMap<String, String> {
    all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

pub(crate) fn of_consumer(consumer: &str, text: &str) -> ControlOverride {
    ControlOverride {
        consumer: consumer.to_owned(),
        resource: "x".to_owned(),
        strategy: String::new(),
        limits: numbers(&[("l", text)]),
    }
}

pub(crate) fn of_strategy(strategy: &str, limit: &str, text: &str) -> ControlStrategy {
    ControlStrategy { strategy: strategy.to_owned(), limits: numbers(&[(limit, text)]), state: 0 }
}

pub(crate) fn listed(list: AccessList, consumer: &str) -> ControlAccess {
    ControlAccess { list: list.into(), consumer: consumer.to_owned(), strategy: String::new() }
}

pub(crate) fn why(reason: &str) -> ChangeOptions {
    ChangeOptions { reason: reason.to_owned(), ..ChangeOptions::default() }
}

pub(crate) fn version_of(response: &EntryChange) -> EntryVersion {
    response.entry.clone().unwrap().version.unwrap()
}
