//! Subscriptions: items are pushed as they arrive, up to the worker's credit.
//!
//! A node that shuts down ends them with UNAVAILABLE, so that workers subscribe on another one. OK is the end of
//! workers that have closed their side.

mod half_close;

use crate::model::MAX_ITEMS;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, stream};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Status, Streaming};
use weir_grpc::CallContext;
use weir_node::limiter::InvalidField;
use weir_node::service::Judge;
use weir_proto::v1::{SubscribeRequest, SubscribeResponse};
use weir_time::clock;
use weir_units::Micros;

use self::half_close::HalfClose;
use super::status;
use super::{WorkerQueues, taken_items};
use crate::calls::{MAX_CREDIT, QueueFailure, TakeQuestion, TakenItems};

/// State of one subscription.
struct Subscription {
    queues: WorkerQueues,
    context: CallContext,
    judge: Option<Judge>,
    queue: String,
    consumer: String,
    credit: u32,
    /// `None` once the worker has closed its side.
    messages: Option<Streaming<SubscribeRequest>>,
    half_close: HalfClose,
    /// A pending take. It is never cancelled for a message, because it may have taken items.
    taking: Option<BoxFuture<'static, Result<TakenItems, QueueFailure>>>,
}

/// Next event of a subscription.
enum SubscriptionEvent {
    Taken(Result<TakenItems, QueueFailure>),
    Message(Option<Result<SubscribeRequest, Status>>),
    /// The credential has ended.
    Ended(Status),
    /// The node shuts down, and no take is pending.
    Closing,
}

/// The items of a subscription, whose first message names the queue.
pub(super) async fn open(
    queues: WorkerQueues,
    context: CallContext,
    mut messages: Streaming<SubscribeRequest>,
) -> Result<impl Stream<Item = Result<SubscribeResponse, Status>> + Send + use<>, Status> {
    let first = messages.message().await?;
    let SubscribeRequest { queue, consumer, credit } = first.unwrap_or_default();
    let mut subscription = Subscription {
        queues,
        judge: Judge::from_context(&context),
        context,
        queue,
        consumer,
        credit: 0,
        messages: Some(messages),
        half_close: HalfClose::default(),
        taking: None,
    };
    subscription.check().map_err(status::new)?;
    subscription.add(credit)?;
    Ok(stream::unfold(Some(subscription), |subscription| async {
        let mut subscription = subscription?;
        match subscription.next().await {
            Ok(Some(items)) => Some((Ok(items), Some(subscription))),
            Ok(None) => None,
            Err(status) => Some((Err(status), None)),
        }
    }))
}

impl Subscription {
    /// The next items; `None` at the end.
    async fn next(&mut self) -> Result<Option<SubscribeResponse>, Status> {
        loop {
            if self.taking.is_none() && self.credit > 0 {
                let Some(wait) = self.half_close.wait(clock::monotonic()) else { return Ok(None) };
                self.taking = Some(self.begin_take(wait));
            }
            match self.event().await {
                None => return Ok(None),
                Some(SubscriptionEvent::Ended(status)) => return Err(status),
                Some(SubscriptionEvent::Closing) => return Err(going()),
                Some(SubscriptionEvent::Message(None)) => {
                    self.messages = None;
                    self.half_close.closed(clock::monotonic());
                }
                Some(SubscriptionEvent::Message(Some(message))) => self.add(message?.credit)?,
                Some(SubscriptionEvent::Taken(taken)) => {
                    self.taking = None;
                    let taken = taken.map_err(status::new)?;
                    if taken.is_closing {
                        return Err(going());
                    }
                    if !taken.items.is_empty() {
                        self.credit = self.credit.saturating_sub(taken.items.len() as u32);
                        let (items, depth) = taken_items(taken);
                        return Ok(Some(SubscribeResponse { items, depth }));
                    }
                }
            }
        }
    }

    /// Waits for items or for a message; `None` if neither can come.
    async fn event(&mut self) -> Option<SubscriptionEvent> {
        let Self { queues, messages, taking, judge, .. } = self;
        let closing = async { queues.load_full().closing().await };
        let ended = async {
            match judge {
                Some(judge) => judge.wait().await,
                None => std::future::pending().await,
            }
        };
        let event = async {
            match (taking, messages) {
                (Some(taking), Some(messages)) => Some(tokio::select! {
                    message = messages.next() => SubscriptionEvent::Message(message),
                    taken = taking => SubscriptionEvent::Taken(taken),
                }),
                (Some(taking), None) => Some(SubscriptionEvent::Taken(taking.await)),
                (None, Some(messages)) => Some(tokio::select! {
                    message = messages.next() => SubscriptionEvent::Message(message),
                    () = closing => SubscriptionEvent::Closing,
                }),
                (None, None) => None,
            }
        };
        tokio::select! {
            biased;
            status = ended => Some(SubscriptionEvent::Ended(status)),
            event = event => event,
        }
    }

    fn begin_take(&self, max_wait: Micros) -> BoxFuture<'static, Result<TakenItems, QueueFailure>> {
        let (queues, queue, consumer) = (self.queues.load_full(), self.queue.clone(), self.consumer.clone());
        let context = self.context.clone();
        let max_items = (self.credit as usize).min(MAX_ITEMS);
        async move {
            let question = TakeQuestion {
                rights: queues.rights().of(&context),
                queue: &queue,
                consumer: &consumer,
                max_items,
                max_wait,
                deadline: None,
            };
            queues.take(&question).await
        }
        .boxed()
    }

    /// Checks all but the credit.
    fn check(&self) -> Result<(), QueueFailure> {
        let (queue, consumer) = (self.queue.as_str(), self.consumer.as_str());
        let queues = self.queues.load();
        let rights = queues.rights().of(&self.context);
        let (max_items, max_wait) = (1, Micros::ZERO);
        let question = TakeQuestion { rights, queue, consumer, max_items, max_wait, deadline: None };
        queues.check(&question).map(|_| ())
    }

    fn add(&mut self, credit: u32) -> Result<(), Status> {
        match self.credit.checked_add(credit).filter(|sum| *sum <= MAX_CREDIT) {
            Some(sum) => {
                self.credit = sum;
                Ok(())
            }
            None => {
                let value = format!("{credit}, beside {} that are not used", self.credit);
                let bound = format!("together they must be at most {MAX_CREDIT}");
                let invalid = InvalidField { field: "credit", value, bound };
                Err(status::invalid(&invalid))
            }
        }
    }
}

/// The end of a subscription whose node shuts down.
fn going() -> Status {
    Status::unavailable("this node is shutting down: subscribe on another one")
}
