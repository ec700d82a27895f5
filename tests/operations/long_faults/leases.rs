//! Holders of leases. A holder knows that it has a permit from the answer to its last call until it gives the permit back, or
//! until the lease that this answer promises has ended.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tonic::Status;
use weir_proto::v1::concurrency_service_client::ConcurrencyServiceClient;
use weir_proto::v1::{AcquireRequest, ReleaseRequest, RenewRequest};

use crate::support::faulty_nodes::{FaultyNodes, SOON_AGAIN};
use crate::support::{SOON, eventually_async};

/// Fewer than there are holders.
const LIMIT: usize = 4;

/// The strategy.
pub(super) const PERMITS: &str = "  permits: { concurrency: { limit: 4, per: [consumer], ttl: 2s, max_ttl: 2s }, \
                                  on_store_failure: error }\n";

/// A time in which a permit was known to be held.
#[derive(Clone, Copy)]
struct Held {
    from: Instant,
    to: Instant,
}

#[derive(Default)]
pub(super) struct Permits {
    held: Mutex<Vec<Held>>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    acquired: u64,
    refused: u64,
    renewed: u64,
    lost: u64,
    unanswered: u64,
}

/// Acquires, renews and releases. A call without an answer is repeated on the other node, with the same id.
pub(super) async fn hold(number: u64, nodes: Arc<FaultyNodes>, permits: Arc<Permits>, until: Instant) {
    let (mut lease, mut node) = (0_u64, number);
    while Instant::now() < until {
        let id = format!("{number}-{lease}");
        lease += 1;
        let sent = Instant::now();
        let answer = match ConcurrencyServiceClient::new(nodes.channel(node)).acquire(acquiring(&id)).await {
            Ok(answer) => answer.into_inner(),
            // The permit may be taken: the lease ends by itself.
            Err(error) => {
                permits.unanswered(&error);
                node += 1;
                tokio::time::sleep(SOON_AGAIN).await;
                continue;
            }
        };
        if !answer.allowed {
            permits.counts.lock().unwrap().refused += 1;
            tokio::time::sleep(SOON_AGAIN).await;
            continue;
        }
        permits.counts.lock().unwrap().acquired += 1;
        let from = Instant::now();
        let end = sent + lasts(answer.expires_after);
        let to = work(&id, &mut node, &nodes, &permits, end).await;
        permits.held.lock().unwrap().push(Held { from, to: to.max(from) });
    }
}

/// Renews a few times and releases. Returns until when the permit was known to be held.
async fn work(id: &str, node: &mut u64, nodes: &FaultyNodes, permits: &Permits, mut end: Instant) -> Instant {
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let sent = Instant::now();
        let renew = RenewRequest {
            resource: "permits".to_owned(),
            consumer: "all".to_owned(),
            id: id.to_owned(),
            ..Default::default()
        };
        match ConcurrencyServiceClient::new(nodes.channel(*node)).renew(renew).await {
            Ok(answer) if answer.get_ref().held => {
                end = end.max(sent + lasts(answer.into_inner().expires_after));
                permits.counts.lock().unwrap().renewed += 1;
            }
            Ok(_) => {
                permits.counts.lock().unwrap().lost += 1;
                return end.min(sent);
            }
            Err(error) => {
                permits.unanswered(&error);
                *node += 1;
            }
        }
    }
    let released = Instant::now();
    let release = ReleaseRequest {
        resource: "permits".to_owned(),
        consumer: "all".to_owned(),
        id: id.to_owned(),
        ..Default::default()
    };
    if let Err(error) = ConcurrencyServiceClient::new(nodes.channel(*node)).release(release).await {
        permits.unanswered(&error);
        *node += 1;
    }
    end.min(released)
}

fn acquiring(id: &str) -> AcquireRequest {
    AcquireRequest {
        resource: "permits".to_owned(),
        consumer: "all".to_owned(),
        id: id.to_owned(),
        ..Default::default()
    }
}

fn lasts(duration: Option<prost_types::Duration>) -> Duration {
    duration.and_then(|duration| duration.try_into().ok()).unwrap_or_default()
}

impl Permits {
    fn unanswered(&self, error: &Status) {
        assert_ne!(error.code(), tonic::Code::InvalidArgument, "{error}");
        self.counts.lock().unwrap().unanswered += 1;
    }

    /// Never were more permits held than there are, and in the end all are free.
    pub(super) async fn check(&self, nodes: &FaultyNodes) {
        let held = self.held.lock().unwrap().clone();
        let mut changes: Vec<(Instant, i64)> =
            held.iter().flat_map(|it| [(it.from, 1), (it.to, -1)]).collect();
        // At one moment, ends come first.
        changes.sort_unstable();
        let (mut open, mut most) = (0, 0);
        for (_, change) in changes {
            open += change;
            most = most.max(open);
        }
        let counts = std::mem::take(&mut *self.counts.lock().unwrap());
        println!("leases: {counts:?}; at most {most} of {LIMIT} permits were held at once");
        assert!(counts.acquired > 0 && counts.refused > 0 && counts.unanswered > 0);
        assert!(most <= LIMIT as i64, "{most} permits of {LIMIT} were held at once");
        eventually_async(SOON, "no other permit is held", async || {
            let answer = ConcurrencyServiceClient::new(nodes.channel(0)).acquire(acquiring("the last")).await;
            answer.is_ok_and(|answer| answer.get_ref().allowed && answer.get_ref().in_flight == Some(1))
        })
        .await;
    }
}
