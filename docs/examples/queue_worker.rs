//! A worker of a queue of Weir: items are sent to it as they come, it works on some at a time, and says what came of
//! each.
//!
//! `weir_proto` has the messages and clients of `proto/`; use the ones that you generate.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status};
use weir_proto::v1::queue_service_client::QueueServiceClient;
use weir_proto::v1::{AckRequest, NackRequest, SubscribeRequest, TakenItem};

/// How work on an item went.
#[derive(Debug)]
pub enum Worked {
    /// It is done, with this outcome.
    Done(String),
    /// It cannot be done now: it is delivered again after a while.
    NotNow(Duration),
}

/// Works on items of `queue`, at most `at_once` at a time, until the server refuses it for good.
///
/// What a worker has that dies is delivered again after the queue's `visibility`. So the work must bear being done
/// twice, and must be done within that time.
pub async fn work<W>(
    client: QueueServiceClient<Channel>,
    (queue, consumer): (&str, &str),
    at_once: u32,
    handle: impl Fn(TakenItem) -> W,
) -> Status
where
    W: Future<Output = Worked> + Send + 'static,
{
    loop {
        // A node that shuts down ends the subscription with UNAVAILABLE: another one takes it.
        let ended = subscribe(client.clone(), (queue, consumer), at_once, &handle).await;
        match ended {
            Err(status) if status.code() != Code::Unavailable => return status,
            Err(status) => eprintln!("subscribing again: {}", status.message()),
            Ok(()) => {}
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Works on the items of one subscription, until it ends.
async fn subscribe<W>(
    mut client: QueueServiceClient<Channel>,
    (queue, consumer): (&str, &str),
    at_once: u32,
    handle: impl Fn(TakenItem) -> W,
) -> Result<(), Status>
where
    W: Future<Output = Worked> + Send + 'static,
{
    // Each item that is done gives the server credit for one more.
    let (credits, requests) = mpsc::channel(at_once.max(1) as usize + 1);
    let (queue, consumer) = (queue.to_owned(), consumer.to_owned());
    let first = SubscribeRequest { queue: queue.clone(), consumer: consumer.clone(), credit: at_once };
    let _ = credits.send(first).await;
    let mut items = client.subscribe(ReceiverStream::new(requests)).await?.into_inner();
    let mut working = JoinSet::new();
    let ended = loop {
        let message = match items.message().await {
            Ok(Some(message)) => message,
            Ok(None) => break Ok(()),
            Err(status) => break Err(status),
        };
        for item in message.items {
            let (client, queue, credits) = (client.clone(), queue.clone(), credits.clone());
            let (id, token, work) = (item.id.clone(), item.token, handle(item));
            working.spawn(async move {
                settle(client, queue, (id, token), work.await).await;
                let _ = credits.send(SubscribeRequest { credit: 1, ..SubscribeRequest::default() }).await;
            });
        }
        while working.try_join_next().is_some() {}
    };
    // What has begun is finished, so that it is not delivered again.
    while working.join_next().await.is_some() {}
    ended
}

/// Acks an item or gives it back. It tries a few times; if all fail, the item is delivered again.
async fn settle(
    mut client: QueueServiceClient<Channel>,
    queue: String,
    (id, token): (String, u64),
    worked: Worked,
) {
    for attempt in 0..5 {
        // The token says which delivery this is: the item may have gone to another worker since.
        let (queue, ids, tokens) = (queue.clone(), vec![id.clone()], vec![token]);
        let settled = match &worked {
            Worked::Done(outcome) => {
                client.ack(AckRequest { queue, ids, tokens, outcome: outcome.clone() }).await.map(drop)
            }
            Worked::NotNow(delay) => {
                let delay = prost_types::Duration::try_from(*delay).ok();
                client.nack(NackRequest { queue, ids, tokens, delay }).await.map(drop)
            }
        };
        if settled.is_ok() {
            return;
        }
        sleep(Duration::from_millis(100 << attempt)).await;
    }
}
