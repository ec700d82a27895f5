//! Holders of token budgets. Each question and each settlement is repeated until it has an answer; some holders die in between, and
//! never settle.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tonic::{Code, Status};
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{
    Cost, SettleOutcome, SettleRequest, SettleResponse, ShouldAllowRequest, ShouldAllowResponse,
};

use crate::support::faulty_nodes::{FaultyNodes, SOON_AGAIN};
use crate::support::{SOON, eventually_async};

const LIMIT: u64 = 100_000_000;
/// The units of an estimate.
const HELD: u64 = 100;
/// `hold_for`, and the longest time that a hold lasts beyond it.
const HOLD_FOR: Duration = Duration::from_secs(4);
const GRAIN: Duration = Duration::from_millis(500);

/// The strategy.
pub(super) const BUDGETS: &str = "  budgets:\n    on_store_failure: error\n    hold: { max: 8s, known_for: 10m }\n    \
                                  limits:\n      - { name: calls, per: [consumer], cost: 1, fixed_window: { limit: \
                                  100000000, window: 24h, anchored: true } }\n      - { name: tokens, per: [consumer], \
                                  cost: tokens, fixed_window: { limit: 100000000, window: 24h, anchored: true } }\n";

/// For less time than an id is known.
const PATIENCE: Duration = Duration::from_secs(50);

/// The ends of holds.
#[derive(Default)]
pub(super) struct Holds {
    held: AtomicU64,
    died: AtomicU64,
    settled: AtomicU64,
    late: AtomicU64,
    /// Calls that had no answer.
    repeated: AtomicU64,
    /// Units of all settlements.
    used: AtomicU64,
}

fn asking(id: String) -> ShouldAllowRequest {
    ShouldAllowRequest {
        resource: "budgets".to_owned(),
        consumer: "gateway".to_owned(),
        costs: HashMap::from([("tokens".to_owned(), Cost { cost: HELD, at_least: None })]),
        hold_for: HOLD_FOR.try_into().ok(),
        id,
        ..Default::default()
    }
}

/// Holds, and settles unless it dies: one call after the other.
pub(super) async fn hold(number: u64, nodes: Arc<FaultyNodes>, holds: Arc<Holds>, until: Instant) {
    let mut random = SmallRng::seed_from_u64(number);
    let (mut call, mut node) = (0_u64, number);
    while Instant::now() < until {
        let request = asking(format!("{number}-{call}"));
        call += 1;
        match holds.ask(&nodes, &mut node, &request).await {
            Ok(answer) => {
                assert!(answer.allowed && !answer.degraded && answer.held_for.is_some(), "{answer:?}")
            }
            // It was held, and the answer came after its end.
            Err(error) => assert_eq!(error.code(), Code::AlreadyExists, "{error}"),
        }
        holds.held.fetch_add(1, SeqCst);
        tokio::time::sleep(Duration::from_millis(random.random_range(0..20))).await;
        if random.random_range(0..3) == 0 {
            holds.died.fetch_add(1, SeqCst);
            continue;
        }
        let used = random.random_range(0..2 * HELD);
        let settle = SettleRequest {
            resource: request.resource.clone(),
            consumer: request.consumer.clone(),
            id: request.id.clone(),
            costs: HashMap::from([("tokens".to_owned(), used)]),
            ..Default::default()
        };
        let settled = holds.settle(&nodes, &mut node, &settle).await;
        match settled.outcome() {
            SettleOutcome::Settled => holds.settled.fetch_add(1, SeqCst),
            SettleOutcome::Late => holds.late.fetch_add(1, SeqCst),
            other => panic!("{other:?}: a hold is lost"),
        };
        holds.used.fetch_add(used, SeqCst);
    }
}

impl Holds {
    /// Asks until some node has answered.
    async fn ask(
        &self,
        nodes: &FaultyNodes,
        node: &mut u64,
        request: &ShouldAllowRequest,
    ) -> Result<ShouldAllowResponse, Status> {
        let began = Instant::now();
        loop {
            match RateLimitServiceClient::new(nodes.channel(*node)).should_allow(request.clone()).await {
                Ok(answer) => return Ok(answer.into_inner()),
                Err(error) if error.code() == Code::AlreadyExists => return Err(error),
                Err(error) => self.go_on(node, began, &error).await,
            }
        }
    }

    /// Settles until some node has answered.
    async fn settle(&self, nodes: &FaultyNodes, node: &mut u64, request: &SettleRequest) -> SettleResponse {
        let began = Instant::now();
        loop {
            match RateLimitServiceClient::new(nodes.channel(*node)).settle(request.clone()).await {
                Ok(answer) => return answer.into_inner(),
                Err(error) => self.go_on(node, began, &error).await,
            }
        }
    }

    /// Goes on to the other node.
    async fn go_on(&self, node: &mut u64, began: Instant, error: &Status) {
        assert_ne!(error.code(), Code::AlreadyExists, "{error}");
        assert!(began.elapsed() < PATIENCE, "no answer for so long: {error}");
        self.repeated.fetch_add(1, SeqCst);
        *node += 1;
        tokio::time::sleep(SOON_AGAIN).await;
    }

    /// Settled units are charged once, and the holds of dead callers have come back in time.
    pub(super) async fn check(&self, nodes: &FaultyNodes) {
        tokio::time::sleep(HOLD_FOR + GRAIN).await;
        let [held, died, settled, late, repeated, used] =
            [&self.held, &self.died, &self.settled, &self.late, &self.repeated, &self.used]
                .map(|count| count.load(SeqCst));
        println!(
            "{held} holds, {repeated} calls of theirs repeated; {died} died, {settled} settled and {late} late: {used} \
             units"
        );
        assert!(died > 0 && settled > 0 && repeated > 0);
        let [calls, tokens] = limits(nodes).await;
        assert_eq!(calls, (held, 0));
        assert_eq!(tokens, (used, 0));
    }
}

/// Used and held of each limit.
async fn limits(nodes: &FaultyNodes) -> [(u64, u64); 2] {
    let costs = HashMap::from([("tokens".to_owned(), Cost { cost: 0, at_least: None })]);
    let peek = ShouldAllowRequest { peek: true, hold_for: None, costs, ..asking(String::new()) };
    let mut answer: Option<ShouldAllowResponse> = None;
    eventually_async(SOON, "Redis answers again", async || {
        let said = RateLimitServiceClient::new(nodes.channel(0)).should_allow(peek.clone()).await;
        answer = said.ok().map(tonic::Response::into_inner).filter(|answer| !answer.degraded);
        answer.is_some()
    })
    .await;
    let answer = answer.unwrap();
    ["calls", "tokens"].map(|name| {
        let limit = answer.limits.iter().find(|limit| limit.name == name).unwrap();
        (LIMIT - limit.remaining - limit.held, limit.held)
    })
}
