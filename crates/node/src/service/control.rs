//! `weir.v1.ControlService` over messages. Served only if configured.

mod bans;
mod requests;

use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream;
use serde_json::json;
use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};
use weir_config::AccessRight;
use weir_core::strategy::Unknown;
use weir_grpc::CallContext;
use weir_proto::v1::control_service_server::{ControlService, ControlServiceServer};
use weir_proto::v1::{
    DeleteEntryRequest, DeleteEntryResponse, EntryChange, LiftBanRequest, LiftBanResponse, ListBansRequest,
    ListBansResponse, ListChangesRequest, ListChangesResponse, ListEntriesRequest, ListEntriesResponse,
    PutAccessRequest, PutAccessResponse, PutOverrideRequest, PutOverrideResponse, PutStrategyRequest,
    PutStrategyResponse, ReloadRequest, ReloadResponse, WatchEntriesRequest, WatchEntriesResponse,
};

use self::requests::{ControlRequests, MAX_HISTORY};
use super::audited::audited;
use super::incoming::{Closing, context};
use super::{MAX_MESSAGE_BYTES, status};
use crate::access::Rights;
use crate::audit::AuditLog;
use crate::control::{Changed, ControlFault, ControlHandle, ControlView, ViewedEntry, version_message};
use crate::limiter::InvalidField;

/// Size limit of an answer: the most entries of the longest kind.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// Changes that a history has if the request does not say how many.
const DEFAULT_HISTORY: u32 = 100;

/// The service over the live control of this node.
pub struct ControlApi {
    control: ControlHandle,
    audit: AuditLog,
}

impl ControlApi {
    /// The service, bounded and ready to be served.
    pub fn server(control: ControlHandle, audit: AuditLog) -> ControlServiceServer<Self> {
        ControlServiceServer::new(Self { control, audit })
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_ANSWER_BYTES)
    }

    fn requests<'a>(&self, rights: Rights<'a>) -> ControlRequests<'a> {
        ControlRequests::new(self.control.rules(), rights)
    }

    async fn change(
        &self,
        asked: Result<crate::control::ChangeAsked, ControlFault>,
    ) -> Result<Option<EntryChange>, Status> {
        let changed = self.control.change(asked.map_err(failed)?).await.map_err(failed)?;
        let Changed { after, before, files } = changed;
        Ok(Some(EntryChange { entry: Some(after), before, files }))
    }
}

#[tonic::async_trait]
impl ControlService for ControlApi {
    async fn put_override(
        &self,
        mut request: Request<PutOverrideRequest>,
    ) -> Result<Response<PutOverrideResponse>, Status> {
        let context = context(&mut request);
        let asked = self.requests(Rights::of(&context)).put_override(request.into_inner());
        Ok(Response::new(PutOverrideResponse { change: self.change(asked).await? }))
    }

    async fn put_access(
        &self,
        mut request: Request<PutAccessRequest>,
    ) -> Result<Response<PutAccessResponse>, Status> {
        let context = context(&mut request);
        let asked = self.requests(Rights::of(&context)).put_access(request.into_inner());
        Ok(Response::new(PutAccessResponse { change: self.change(asked).await? }))
    }

    async fn put_strategy(
        &self,
        mut request: Request<PutStrategyRequest>,
    ) -> Result<Response<PutStrategyResponse>, Status> {
        let context = context(&mut request);
        let asked = self.requests(Rights::of(&context)).put_strategy(request.into_inner());
        Ok(Response::new(PutStrategyResponse { change: self.change(asked).await? }))
    }

    async fn delete_entry(
        &self,
        mut request: Request<DeleteEntryRequest>,
    ) -> Result<Response<DeleteEntryResponse>, Status> {
        let context = context(&mut request);
        let asked = self.requests(Rights::of(&context)).delete(request.into_inner());
        Ok(Response::new(DeleteEntryResponse { change: self.change(asked).await? }))
    }

    async fn list_entries(
        &self,
        _request: Request<ListEntriesRequest>,
    ) -> Result<Response<ListEntriesResponse>, Status> {
        let view = self.control.view();
        let entries = view.living().map(|(key, entry)| self.control.shown(key, entry)).collect();
        Ok(Response::new(ListEntriesResponse {
            entries,
            version: Some(version_message(view.position)),
            files: self.control.files(),
            incomplete: view.incomplete.clone().unwrap_or_default(),
            refused: self.control.refused(),
        }))
    }

    type WatchEntriesStream = Pin<Box<dyn Stream<Item = Result<WatchEntriesResponse, Status>> + Send>>;

    async fn watch_entries(
        &self,
        mut request: Request<WatchEntriesRequest>,
    ) -> Result<Response<Self::WatchEntriesStream>, Status> {
        let context = context(&mut request);
        let closing = request.extensions_mut().remove::<Closing>();
        let watched = Watched {
            context,
            control: self.control.clone(),
            views: self.control.watch(),
            closing: closing.map(|Closing(closing)| closing),
            sent: Arc::default(),
            ready: Vec::new(),
            is_first: true,
            is_refused: false,
        };
        Ok(Response::new(Box::pin(stream::unfold(watched, Watched::next))))
    }

    async fn list_changes(
        &self,
        request: Request<ListChangesRequest>,
    ) -> Result<Response<ListChangesResponse>, Status> {
        let limit = request.into_inner().limit.unwrap_or(DEFAULT_HISTORY);
        if !(1..=MAX_HISTORY).contains(&limit) {
            let bound = format!("it must be 1 to {MAX_HISTORY}");
            return Err(status::invalid(&InvalidField { field: "limit", value: limit.to_string(), bound }));
        }
        let changes = self.control.history(limit as usize).await.map_err(failed)?;
        Ok(Response::new(ListChangesResponse { changes }))
    }

    async fn list_bans(
        &self,
        request: Request<ListBansRequest>,
    ) -> Result<Response<ListBansResponse>, Status> {
        Ok(Response::new(bans::page(&self.control, request.get_ref())?))
    }

    async fn lift_ban(
        &self,
        mut request: Request<LiftBanRequest>,
    ) -> Result<Response<LiftBanResponse>, Status> {
        let context = context(&mut request);
        let asked = bans::lift(&self.control, request.into_inner(), Rights::of(&context))?;
        let lifted = self.control.lift(asked).await.map_err(failed)?;
        Ok(Response::new(LiftBanResponse { ban: Some(lifted.into()) }))
    }

    async fn reload(&self, mut request: Request<ReloadRequest>) -> Result<Response<ReloadResponse>, Status> {
        let context = context(&mut request);
        let rights = Rights::of(&context);
        let report = self.control.reload().await;
        let report = report.ok_or_else(|| status::busy("too many reloads wait; try again later".to_owned()));
        let mistakes = report.map(|report| report.err().unwrap_or_default());
        let result =
            |mistakes: &Vec<String>| json!({ "mistakes": mistakes.len(), "files": self.control.files() });
        audited(&self.audit, ("Reload", rights), request.get_ref(), &mistakes, result);
        let mistakes = mistakes?;
        tracing::info!(
            caller = rights.name(),
            method = "Reload",
            mistakes = mistakes.len(),
            "the files were read again by request"
        );
        Ok(Response::new(ReloadResponse { mistakes, files: self.control.files() }))
    }
}

/// An open watch.
struct Watched {
    /// Whose it is: a reload of the rules may take the right away.
    context: CallContext,
    control: ControlHandle,
    views: watch::Receiver<Arc<ControlView>>,
    /// Changes when the connection is about to end.
    closing: Option<watch::Receiver<()>>,
    sent: Arc<ControlView>,
    /// Entries to send, the last first.
    ready: Vec<ViewedEntry>,
    is_first: bool,
    is_refused: bool,
}

impl Watched {
    async fn next(mut self) -> Option<(Result<WatchEntriesResponse, Status>, Self)> {
        loop {
            if self.is_refused {
                return None;
            }
            if let Err(refused) = Rights::of(&self.context).check_any(AccessRight::Control) {
                self.is_refused = true;
                return Some((Err(status::refused(refused)), self));
            }
            if let Some(entry) = self.ready.pop() {
                let entry = Some(self.control.shown(entry.key(), &entry.message()));
                return Some((Ok(WatchEntriesResponse { entry }), self));
            }
            if !std::mem::take(&mut self.is_first) {
                let closed = async {
                    match &mut self.closing {
                        Some(closing) => drop(closing.changed().await),
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    changed = self.views.changed() => changed.ok()?,
                    () = closed => return None,
                }
            }
            let view = Arc::clone(&self.views.borrow_and_update());
            self.ready = view.changes(&self.sent);
            self.ready.reverse();
            self.sent = view;
        }
    }
}

fn failed(fault: ControlFault) -> Status {
    let text = fault.to_string();
    match fault {
        ControlFault::Invalid(_) => Status::invalid_argument(text),
        ControlFault::Unknown(Unknown::Strategy { .. } | Unknown::Resource { .. })
        | ControlFault::Missing
        | ControlFault::NoBan => Status::not_found(text),
        ControlFault::Stale(_) => Status::aborted(text),
        ControlFault::Full(_) => Status::resource_exhausted(text),
        ControlFault::Store(_)
        | ControlFault::Lost
        | ControlFault::NotWritten(_)
        | ControlFault::Busy
        | ControlFault::Ending => Status::unavailable(text),
    }
}
