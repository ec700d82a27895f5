//! `weir.v1.QueueService` over messages.

mod admin;
mod archive;
mod page;
mod status;
mod subscription;

use std::pin::Pin;
use std::sync::Arc;

use crate::model::{DeliveredItem, ItemId, QueueRefusal, RedeliveryCause};
use arc_swap::ArcSwap;
use prost_types::Duration;
use tokio_stream::Stream;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use weir_node::feature::ServiceContext;
use weir_node::service::{AddRoutes, call_context as context, duration, micros};
use weir_proto::v1::queue_service_server::{self, QueueService, QueueServiceServer};
use weir_proto::v1::{
    AckRequest, AckResponse, BrowseRequest, BrowseResponse, DeliveryCause, EnqueueRequest, EnqueueResponse,
    ExtendRequest, ExtendResponse, NackRequest, NackResponse, OutcomesRequest, OutcomesResponse, Reason,
    StatsRequest, StatsResponse, SubscribeRequest, SubscribeResponse, TakeRequest, TakeResponse, TakenItem,
    queue_admin_service_server,
};
use weir_units::Micros;

use self::admin::QueueAdminApi;
use crate::calls::{Enqueued, PutItem, Queues, Settled, TakeQuestion, TakenItems, WorkersItems};
use crate::settings::MAX_QUEUE_MESSAGE;

/// Items per call if it names no number.
const DEFAULT_ITEMS: u32 = 1;

/// The service over one worker's queues.
struct QueueApi {
    queues: WorkerQueues,
}

/// One worker's queues under the current snapshot.
pub(crate) type WorkerQueues = Arc<ArcSwap<Queues>>;

/// Returns the services of one worker on a port, by name.
pub(crate) fn routes(queues: WorkerQueues, worker: &ServiceContext) -> Vec<(&'static str, AddRoutes)> {
    let mut routes: Vec<(&'static str, AddRoutes)> = Vec::new();
    if worker.serves_calls {
        let service = QueueApi::server(Arc::clone(&queues));
        let add = |routes: Routes| routes.add_service(service);
        routes.push((queue_service_server::SERVICE_NAME, Box::new(add)));
    }
    if worker.serves_operators {
        let service = QueueAdminApi::server(queues, worker.audit.clone());
        let add = |routes: Routes| routes.add_service(service);
        routes.push((queue_admin_service_server::SERVICE_NAME, Box::new(add)));
    }
    routes
}

impl QueueApi {
    /// The service, bounded and ready to be served.
    fn server(queues: WorkerQueues) -> QueueServiceServer<Self> {
        QueueServiceServer::new(Self { queues })
            .max_decoding_message_size(MAX_QUEUE_MESSAGE)
            .max_encoding_message_size(MAX_QUEUE_MESSAGE)
    }
}

#[tonic::async_trait]
impl QueueService for QueueApi {
    async fn enqueue(
        &self,
        mut request: Request<EnqueueRequest>,
    ) -> Result<Response<EnqueueResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues.load_full(), context.deadline);
        let rights = queues.rights().of(&context);
        let EnqueueRequest { queue, items } = request.get_ref();
        let items: Vec<PutItem<'_>> =
            items.iter().map(|item| PutItem { id: &item.id, payload: &item.payload }).collect();
        let enqueued = queues.enqueue(rights, queue, &items, deadline).await.map_err(status::new)?;
        Ok(Response::new(enqueue_response(enqueued)))
    }

    async fn take(&self, mut request: Request<TakeRequest>) -> Result<Response<TakeResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues.load_full(), context.deadline);
        let rights = queues.rights().of(&context);
        let TakeRequest { queue, consumer, max_items, max_wait } = request.get_ref();
        let max_items = max_items.unwrap_or(DEFAULT_ITEMS) as usize;
        let max_wait = span_or_zero("max_wait", max_wait.as_ref())?;
        let question = TakeQuestion { rights, queue, consumer, max_items, max_wait, deadline };
        let taken = queues.take(&question).await.map_err(status::new)?;
        let (items, depth) = taken_items(taken);
        Ok(Response::new(TakeResponse { items, depth }))
    }

    type SubscribeStream = Pin<Box<dyn Stream<Item = Result<SubscribeResponse, Status>> + Send>>;

    async fn subscribe(
        &self,
        mut request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let context = context(&mut request);
        let stream = subscription::open(Arc::clone(&self.queues), context, request.into_inner()).await?;
        Ok(Response::new(Box::pin(stream)))
    }

    async fn ack(&self, mut request: Request<AckRequest>) -> Result<Response<AckResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues.load_full(), context.deadline);
        let rights = queues.rights().of(&context);
        let AckRequest { queue, ids, outcome, tokens } = request.get_ref();
        let items = WorkersItems { ids: &item_ids(ids)?, tokens };
        let settled = queues.ack(rights, queue, (items, outcome), deadline).await;
        let Settled { done, depth, .. } = settled.map_err(status::new)?;
        Ok(Response::new(AckResponse { acked: done, depth }))
    }

    async fn nack(&self, mut request: Request<NackRequest>) -> Result<Response<NackResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues.load_full(), context.deadline);
        let rights = queues.rights().of(&context);
        let NackRequest { queue, ids, delay, tokens } = request.get_ref();
        let delay = span_or_zero("delay", delay.as_ref())?;
        let items = WorkersItems { ids: &item_ids(ids)?, tokens };
        let settled = queues.nack(rights, queue, (items, delay), deadline).await;
        let Settled { done, dead_lettered, depth } = settled.map_err(status::new)?;
        Ok(Response::new(NackResponse { nacked: done, dead_lettered: small(dead_lettered), depth }))
    }

    async fn extend(&self, mut request: Request<ExtendRequest>) -> Result<Response<ExtendResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues.load_full(), context.deadline);
        let rights = queues.rights().of(&context);
        let ExtendRequest { queue, ids, tokens, visibility } = request.get_ref();
        let visibility = span_or_zero("visibility", visibility.as_ref())?;
        let items = WorkersItems { ids: &item_ids(ids)?, tokens };
        let settled = queues.extend(rights, queue, (items, visibility), deadline).await;
        let Settled { done, depth, .. } = settled.map_err(status::new)?;
        Ok(Response::new(ExtendResponse { extended: done, depth }))
    }

    async fn browse(&self, mut request: Request<BrowseRequest>) -> Result<Response<BrowseResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues.load_full(), context.deadline);
        let rights = queues.rights().of(&context);
        let BrowseRequest { queue, max_items, after } = request.get_ref();
        let page = page::page_of(after, *max_items, page::DEFAULT_PAGE)?;
        let browsed = queues.browse(rights, queue, page, deadline).await;
        Ok(Response::new(page::browse_response(browsed.map_err(status::new)?)))
    }

    async fn outcomes(
        &self,
        mut request: Request<OutcomesRequest>,
    ) -> Result<Response<OutcomesResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues.load_full(), context.deadline);
        let rights = queues.rights().of(&context);
        let search = archive::search_of(request.get_ref())?;
        let queue = &request.get_ref().queue;
        let found = queues.outcomes(rights, queue, search, deadline).await;
        Ok(Response::new(archive::response(found.map_err(status::new)?)))
    }

    async fn stats(&self, mut request: Request<StatsRequest>) -> Result<Response<StatsResponse>, Status> {
        let context = context(&mut request);
        let (queues, deadline) = (self.queues.load_full(), context.deadline);
        let rights = queues.rights().of(&context);
        let StatsRequest { queue, outcomes } = request.get_ref();
        let stats = queues.stats(rights, queue, *outcomes as usize, deadline).await;
        let (depth, named, stats) = stats.map_err(status::new)?;
        let (numbers, totals) = (named.rule.numbers(), stats.totals);
        Ok(Response::new(StatsResponse {
            depth,
            capacity: numbers.capacity,
            bytes: stats.bytes,
            max_bytes: numbers.max_bytes,
            unacked: stats.unacked,
            dead_depth: stats.dead_depth,
            oldest_age: stats.oldest_age.map(duration),
            accepted: totals.accepted,
            first_deliveries: totals.first_deliveries,
            redelivered_nack: totals.redelivered_nack,
            redelivered_visibility: totals.redelivered_visibility,
            acked: totals.acked,
            dead_lettered: totals.dead_lettered,
            outcomes: stats.outcomes,
            newest: stats.newest.into_iter().map(archive::item_outcome).collect(),
            aged_out: totals.aged_out,
            dropped: totals.dropped,
            purged: totals.purged,
            redriven: totals.redriven,
        }))
    }
}

fn enqueue_response(enqueued: Enqueued) -> EnqueueResponse {
    let Enqueued { accepted, dropped, depth, capacity } = enqueued;
    let numbers = EnqueueResponse { depth, capacity, dropped: small(dropped), ..EnqueueResponse::default() };
    let refused = |reason: Reason| EnqueueResponse { reason: reason.into(), ..numbers.clone() };
    match accepted {
        Ok((ids, added)) => EnqueueResponse {
            accepted: true,
            item_ids: ids.iter().map(ItemId::to_string).collect(),
            added: small(added),
            ..refused(Reason::Ok)
        },
        Err(QueueRefusal::Full) => refused(Reason::Full),
        Err(QueueRefusal::Never | QueueRefusal::OtherPayload(_)) => refused(Reason::Never),
    }
}

fn taken_items(taken: TakenItems) -> (Vec<TakenItem>, u64) {
    let TakenItems { items, depth, token, visible_for, .. } = taken;
    (items.into_iter().map(|item| taken_item(item, token, visible_for)).collect(), depth)
}

fn taken_item(item: DeliveredItem, token: u64, visible_for: Option<Micros>) -> TakenItem {
    let (cause, previous_consumer) = match item.again {
        None => (DeliveryCause::First, String::new()),
        Some(again) => {
            let cause = match again.cause {
                RedeliveryCause::Nack => DeliveryCause::Nack,
                RedeliveryCause::Visibility => DeliveryCause::Visibility,
            };
            (cause, again.taker.into())
        }
    };
    TakenItem {
        id: item.id.to_string(),
        payload: item.payload.to_vec(),
        deliveries: small(item.deliveries),
        cause: cause.into(),
        previous_consumer,
        origin: item.origin.map(|id| id.to_string()).unwrap_or_default(),
        visible_for: visible_for.map(duration),
        token,
    }
}

fn item_ids(ids: &[String]) -> Result<Vec<ItemId>, Status> {
    ids.iter().map(|id| page::item_id("ids", id)).collect()
}

fn span_or_zero(field: &'static str, given: Option<&Duration>) -> Result<Micros, Status> {
    let read = |given| {
        micros(field, given, "it must be a duration of 0 or more").map_err(|error| status::invalid(&error))
    };
    given.map_or(Ok(Micros::ZERO), read)
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
