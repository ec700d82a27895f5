//! Charges with an id, which are made until they have an answer, and plain ones, which are made once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use weir_proto::v1::ShouldAllowRequest;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;

use crate::support::faulty_nodes::{FaultyNodes, SOON_AGAIN};
use crate::support::{SOON, eventually_async};

const LIMIT: u64 = 1_000_000;

/// The strategy.
pub(super) const CHARGES: &str = "  charges: { on_store_failure: error, limits: [{ name: each, per: [consumer], \
                                  fixed_window: { limit: 1000000, window: 24h, anchored: true } }] }\n";

/// For less time than an id lives.
const PATIENCE: Duration = Duration::from_secs(50);

/// The ends of calls.
#[derive(Default)]
pub(super) struct Charges {
    /// Ids that have an answer.
    ids: AtomicU64,
    /// Calls with an id that had no answer.
    repeated: AtomicU64,
    /// Plain calls with an answer, and without one.
    plain: AtomicU64,
    unknown: AtomicU64,
}

fn asking(consumer: &str, id: String) -> ShouldAllowRequest {
    ShouldAllowRequest {
        resource: "charges".to_owned(),
        consumer: consumer.to_owned(),
        id,
        ..Default::default()
    }
}

/// Makes one charge after the other, each until it has an answer of some node.
pub(super) async fn charge(number: u64, nodes: Arc<FaultyNodes>, charges: Arc<Charges>, until: Instant) {
    let (mut call, mut node) = (0_u64, number);
    while Instant::now() < until {
        let (began, request) = (Instant::now(), asking("ids", format!("{number}-{call}")));
        loop {
            match RateLimitServiceClient::new(nodes.channel(node)).should_allow(request.clone()).await {
                Ok(answer) => {
                    let answer = answer.into_inner();
                    assert!(answer.allowed && !answer.degraded, "{answer:?}");
                    break;
                }
                Err(error) => {
                    assert!(began.elapsed() < PATIENCE, "no answer for so long: {error}");
                    charges.repeated.fetch_add(1, SeqCst);
                    node += 1;
                    tokio::time::sleep(SOON_AGAIN).await;
                }
            }
        }
        charges.ids.fetch_add(1, SeqCst);
        call += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Makes plain charges, each once.
pub(super) async fn charge_plainly(
    number: u64,
    nodes: Arc<FaultyNodes>,
    charges: Arc<Charges>,
    until: Instant,
) {
    let mut node = number;
    while Instant::now() < until {
        let request = asking("plain", String::new());
        match RateLimitServiceClient::new(nodes.channel(node)).should_allow(request).await {
            Ok(answer) => {
                assert!(answer.get_ref().allowed);
                charges.plain.fetch_add(1, SeqCst);
            }
            Err(_) => {
                charges.unknown.fetch_add(1, SeqCst);
                node += 1;
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl Charges {
    /// Each id is charged once, and each plain call with an answer; of those without one, any number.
    pub(super) async fn check(&self, nodes: &FaultyNodes) {
        let [ids, repeated, plain, unknown] =
            [&self.ids, &self.repeated, &self.plain, &self.unknown].map(|count| count.load(SeqCst));
        let (of_ids, of_plain) = (used(nodes, "ids").await, used(nodes, "plain").await);
        println!(
            "{ids} ids, {repeated} calls with one repeated, {of_ids} charged; {plain} plain calls answered and {unknown} \
             not, {of_plain} charged"
        );
        assert!(ids > 0 && plain > 0 && repeated > 0);
        assert_eq!(of_ids, ids);
        assert!((plain..=plain + unknown).contains(&of_plain));
    }
}

async fn used(nodes: &FaultyNodes, consumer: &str) -> u64 {
    let mut remaining = None;
    let peek = ShouldAllowRequest { peek: true, ..asking(consumer, String::new()) };
    eventually_async(SOON, "Redis answers again", async || {
        let answer = RateLimitServiceClient::new(nodes.channel(0)).should_allow(peek.clone()).await;
        remaining = answer.ok().and_then(|answer| answer.into_inner().remaining);
        remaining.is_some()
    })
    .await;
    LIMIT - remaining.unwrap()
}
