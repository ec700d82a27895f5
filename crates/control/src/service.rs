//! `weir.v1.ControlService` over messages. Served only if configured.

mod bans;
mod requests;

use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream;
use serde_json::json;
use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use weir_config::AccessRight;
use weir_core::strategy::Unknown;
use weir_grpc::CallContext;
use weir_node::access::Rights;
use weir_node::audit::AuditLog;
use weir_node::limiter::{InvalidField, shown};
use weir_node::service::{AddRoutes, Closing, audited, call_context as context, status};
use weir_proto::v1::control_service_server::{ControlService, ControlServiceServer};
use weir_proto::v1::{
    ChangeResult, DeleteEntryRequest, DeleteEntryResponse, EntryChange, FindChangeRequest,
    FindChangeResponse, LiftBanRequest, LiftBanResponse, ListBansRequest, ListBansResponse,
    ListChangesRequest, ListChangesResponse, ListEntriesRequest, ListEntriesResponse, PutAccessRequest,
    PutAccessResponse, PutManyRequest, PutManyResponse, PutOverrideRequest, PutOverrideResponse,
    PutStrategyRequest, PutStrategyResponse, ReloadRequest, ReloadResponse, WatchEntriesRequest,
    WatchEntriesResponse,
};

use self::requests::{ControlRequests, MAX_HISTORY};
use crate::model::ControlPosition;
use crate::task::{
    Changed, ChangedEntry, ControlFault, ControlHandle, ControlView, FoundChange, ViewedEntry, change_of,
    version_message,
};

/// Size limit of a request: the most entries of one call. What is kept of them has half of it.
pub(crate) const MAX_CHANGE_BYTES: usize = 2 << 20;

/// Size limit of an answer: the most entries of usual length, ten times.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// Changes that a history has if the request does not say how many.
const DEFAULT_HISTORY: u32 = 100;

/// Returns the service, to be added to the routes of a worker.
pub(crate) fn routes(control: ControlHandle, audit: AuditLog) -> AddRoutes {
    let service = ControlApi::server(control, audit);
    Box::new(|routes: Routes| routes.add_service(service))
}

/// The service over the live control of this node.
struct ControlApi {
    control: ControlHandle,
    audit: AuditLog,
}

impl ControlApi {
    /// The service, bounded and ready to be served.
    fn server(control: ControlHandle, audit: AuditLog) -> ControlServiceServer<Self> {
        ControlServiceServer::new(Self { control, audit })
            .max_decoding_message_size(MAX_CHANGE_BYTES)
            .max_encoding_message_size(MAX_ANSWER_BYTES)
    }

    fn requests<'a>(&self, rights: Rights<'a>) -> ControlRequests<'a> {
        ControlRequests::new(self.control.rules(), rights)
    }

    async fn change(
        &self,
        asked: Result<crate::task::ChangeAsked, ControlFault>,
    ) -> Result<Option<EntryChange>, Status> {
        let changed = self.control.change(asked.map_err(failed)?).await.map_err(failed)?;
        let applied = changed.change.is_some();
        let entry = changed.entries.into_iter().next();
        Ok(entry.map(|ChangedEntry { after, before, files }| EntryChange {
            entry: Some(after),
            before,
            files,
            applied,
        }))
    }
}

#[tonic::async_trait]
impl ControlService for ControlApi {
    async fn put_override(
        &self,
        mut request: Request<PutOverrideRequest>,
    ) -> Result<Response<PutOverrideResponse>, Status> {
        let context = context(&mut request);
        let asked = self.requests(Rights::from_context(&context)).put_override(request.into_inner());
        Ok(Response::new(PutOverrideResponse { change: self.change(asked).await? }))
    }

    async fn put_access(
        &self,
        mut request: Request<PutAccessRequest>,
    ) -> Result<Response<PutAccessResponse>, Status> {
        let context = context(&mut request);
        let asked = self.requests(Rights::from_context(&context)).put_access(request.into_inner());
        Ok(Response::new(PutAccessResponse { change: self.change(asked).await? }))
    }

    async fn put_strategy(
        &self,
        mut request: Request<PutStrategyRequest>,
    ) -> Result<Response<PutStrategyResponse>, Status> {
        let context = context(&mut request);
        let asked = self.requests(Rights::from_context(&context)).put_strategy(request.into_inner());
        Ok(Response::new(PutStrategyResponse { change: self.change(asked).await? }))
    }

    async fn put_many(
        &self,
        mut request: Request<PutManyRequest>,
    ) -> Result<Response<PutManyResponse>, Status> {
        let context = context(&mut request);
        let asked = self.requests(Rights::from_context(&context)).put_many(request.into_inner());
        let changed = self.control.change(asked.map_err(failed)?).await.map_err(failed)?;
        Ok(Response::new(many(&changed)))
    }

    async fn find_change(
        &self,
        request: Request<FindChangeRequest>,
    ) -> Result<Response<FindChangeResponse>, Status> {
        let change = request.into_inner().change;
        let Some(id) = change_of(&change).filter(|_| !change.is_empty()) else {
            let bound = "it must be 16 hexadecimal digits".to_owned();
            return Err(status::invalid(&InvalidField { field: "change", value: shown(&change), bound }));
        };
        let found = self.control.find(id).await.map_err(failed)?;
        Ok(Response::new(found_message(id, found)))
    }

    async fn delete_entry(
        &self,
        mut request: Request<DeleteEntryRequest>,
    ) -> Result<Response<DeleteEntryResponse>, Status> {
        let context = context(&mut request);
        let asked = self.requests(Rights::from_context(&context)).delete(request.into_inner());
        Ok(Response::new(DeleteEntryResponse { change: self.change(asked).await? }))
    }

    async fn list_entries(
        &self,
        _request: Request<ListEntriesRequest>,
    ) -> Result<Response<ListEntriesResponse>, Status> {
        let view = self.control.view();
        let entries = view.living().map(|(key, entry)| self.control.with_waiting(key, entry)).collect();
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
        let asked = bans::lift(&self.control, request.into_inner(), Rights::from_context(&context))?;
        let lifted = self.control.lift(asked).await.map_err(failed)?;
        Ok(Response::new(LiftBanResponse { ban: Some(lifted.into()) }))
    }

    async fn reload(&self, mut request: Request<ReloadRequest>) -> Result<Response<ReloadResponse>, Status> {
        let context = context(&mut request);
        let rights = Rights::from_context(&context);
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
            "files reloaded on request"
        );
        Ok(Response::new(ReloadResponse { mistakes, files: self.control.files() }))
    }
}

/// An open watch.
struct Watched {
    /// Context of the watcher's call: a reload of the rules may take the right away.
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
            if let Err(refused) = Rights::from_context(&self.context).check_any(AccessRight::Control) {
                self.is_refused = true;
                return Some((Err(status::refused(refused)), self));
            }
            if let Some(entry) = self.ready.pop() {
                let entry = Some(self.control.with_waiting(entry.key(), &entry.message()));
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

/// Encodes the result of several changes.
fn many(changed: &Changed) -> PutManyResponse {
    let count = |is: fn(&ChangedEntry) -> bool| {
        u32::try_from(changed.entries.iter().filter(|one| is(one)).count()).unwrap_or(u32::MAX)
    };
    let position = |(change, version)| version_message(ControlPosition { version, change });
    PutManyResponse {
        applied: changed.change.is_some(),
        version: changed.change.map(position),
        created: count(|one| one.before.is_none() && !one.after.deleted),
        replaced: count(|one| one.before.is_some() && !one.after.deleted),
        deleted: count(|one| one.after.deleted),
    }
}

fn found_message(change: u64, found: FoundChange) -> FindChangeResponse {
    let (result, position, reason) = match found {
        FoundChange::Made { version } => {
            (ChangeResult::Applied, Some(ControlPosition { version, change }), String::new())
        }
        FoundChange::NotMade { position } => (ChangeResult::NotApplied, Some(position), String::new()),
        FoundChange::Unknown { error } => (ChangeResult::Unknown, None, error),
    };
    FindChangeResponse { result: result.into(), version: position.map(version_message), reason }
}

fn failed(fault: ControlFault) -> Status {
    let text = fault.to_string();
    status_of(&fault, text)
}

fn status_of(fault: &ControlFault, text: String) -> Status {
    match fault {
        ControlFault::Entry { fault, .. } => status_of(fault, text),
        ControlFault::Invalid(_) => Status::invalid_argument(text),
        ControlFault::Unknown(Unknown::Strategy { .. } | Unknown::Resource { .. })
        | ControlFault::Missing
        | ControlFault::NoBan => Status::not_found(text),
        ControlFault::Stale(_) => Status::aborted(text),
        ControlFault::Full(_) => Status::resource_exhausted(text),
        ControlFault::Store { .. }
        | ControlFault::Bans(_)
        | ControlFault::Lost
        | ControlFault::NotWritten(_)
        | ControlFault::Busy
        | ControlFault::Ending => Status::unavailable(text),
    }
}
