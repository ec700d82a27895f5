//! Decisions on a Redis of the bench, by a strategy that nodes may decide by themselves, and by one that they may not.

use bytes::Bytes;
use prost::Message as _;
use tokio::task::JoinSet;
use weir_config::{RedisConfig, Topology};
use weir_core::key::KeySecret;
use weir_grpc::{BegunCall, CallContext, IncomingCall, Messages, RequestBody};
use weir_proto::v1::ShouldAllowRequest;
use weir_store::coalesce::Coalesce;
use weir_store::denials::DenialsShared;
use weir_store::local::LocalShared;
use weir_store::redis::RedisShared;
use weir_store::{Store, TOGETHER};
use weir_time::clock::{Clock, Monotonic};
use weir_units::Micros;

/// The variable with the address of Redis.
pub(crate) const REDIS: &str = "WEIR_BENCH_REDIS";

/// Keys, so that no call waits for another one.
const KEYS: u64 = 4_096;

/// Makes so many rounds of calls that arrive together, in front of Redis as a service puts it.
pub(crate) fn perform(strategy: &str, rounds: u64) {
    let config = RedisConfig {
        nodes: vec![std::env::var(REDIS).unwrap()],
        topology: Topology::Single,
        deadline: Micros::from_secs(30),
        connect_timeout: Micros::from_secs(30),
        ..RedisConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = RedisShared::new(&config, KeySecret::BUILT_IN, Clock::System).store();
        let denials = DenialsShared::new(Micros::from_secs(60), Monotonic::from_clock(&Clock::System));
        let local = LocalShared::new(config.local_budget, Clock::System);
        let store = local.before(Coalesce::before(denials.before(store), &config));
        ask(store, strategy, rounds).await;
    });
}

async fn ask<S: Store>(store: S, strategy: &str, rounds: u64) {
    let service = super::service(store, false);
    let messages: Vec<Bytes> = (0..KEYS).map(|key| message(strategy, key)).collect();
    let mut next = messages.iter().cycle();
    for _ in 0..rounds {
        let posed = next.by_ref().take(TOGETHER).map(|framed| {
            let messages = Messages::new(RequestBody::whole(framed.clone()), 1 << 20);
            match service.should_allow(IncomingCall { context: CallContext::default(), messages }) {
                BegunCall::Pending(pending) => pending,
                _ => panic!("its message is here"),
            }
        });
        let posed: Vec<_> = posed.collect();
        let mut waiting = JoinSet::new();
        for (_, call) in service.answer_each(&posed, |_, _| panic!("Redis answers later")) {
            waiting.spawn(call);
        }
        while let Some(answer) = waiting.join_next().await {
            assert!(answer.unwrap().is_ok());
        }
    }
}

fn message(strategy: &str, key: u64) -> Bytes {
    let question = ShouldAllowRequest {
        resource: "api".to_owned(),
        consumer: format!("user_{key:06}"),
        strategy: strategy.to_owned(),
        ..ShouldAllowRequest::default()
    };
    super::framed(&question.encode_to_vec())
}
