//! Envoy's messages as we read and write them ourselves, compared with the generated types.

use std::sync::Arc;

use prometheus::Registry;
use proptest::prelude::*;
use prost::Message as _;
use tonic::Code;
use weir_config::MemoryConfig;
use weir_envoy::ENVOY;
use weir_envoy::files::EnvoyFiles;
use weir_envoy::limiter::{EnvoyLimiter, Loaded};
use weir_envoy::metrics::EnvoyMetrics;
use weir_envoy::service::{EnvoyRateLimit, MAX_RATE_LIMIT_BYTES};
use weir_envoy::settings::EnvoyConfig;
use weir_node::audit::AuditLog;
use weir_node::feature::ServiceContext;
use weir_node::feature_parts::FeatureParts;
use weir_node::readiness::Readiness;
use weir_node::service::Snapshot;
use weir_node::telemetry::Metrics;
use weir_proto::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use weir_store::memory::MemoryStore;
use weir_time::clock::{Clock, ManualClock};

use super::files;
use super::notation::request as ask;
use super::properties::any_request;
use crate::support::damage::damaged;
use crate::support::grpc::{ended, framed, request, request_within};
use crate::support::server::{BASE, config};

pub(super) type Service = Arc<EnvoyRateLimit>;

/// A service of the cases' files with nothing counted, which tells all it can.
pub(super) fn service() -> Service {
    let config = config();
    let metrics = Metrics::register(&Registry::new(), &config.rules).unwrap();
    let store = MemoryStore::new(&MemoryConfig::default(), Clock::Manual(ManualClock::at(BASE)));
    let counted = EnvoyMetrics::new(1);
    let domains = EnvoyFiles::load(files(), false).unwrap().compile();
    let loaded = Loaded::new(Arc::new(domains), &counted);
    let envoy = EnvoyConfig { headers: true, dynamic_metadata: true, ..EnvoyConfig::default() };
    let features = FeatureParts::default().with(ENVOY, loaded.part(true));
    let snapshot = Snapshot { features, ..Snapshot::new(config.rules, &metrics) };
    let audit = AuditLog::open(None, Clock::System).unwrap();
    let worker = ServiceContext::apart(0, Arc::new(store), &metrics, (&Readiness::starting(true), audit));
    EnvoyRateLimit::new(&worker, &snapshot, EnvoyLimiter::new(envoy, counted.recorder(0)))
}

async fn answer(service: &Service, message: &[u8]) -> Result<Vec<u8>, Code> {
    ended(service.should_rate_limit(request_within(&framed(0, message), usize::MAX, MAX_RATE_LIMIT_BYTES)))
        .await
}

#[tokio::test]
async fn a_request_is_the_same_in_whatever_pieces_it_arrives() {
    let whole = framed(0, &ask("rl [service=service_1]!1 [foo=x,bar=y]@7/DAY +3").encode_to_vec());
    let expected = ended(service().should_rate_limit(request(&whole, usize::MAX))).await.unwrap();
    for piece in 1..whole.len() {
        let observed = ended(service().should_rate_limit(request(&whole, piece))).await;
        assert_eq!(observed.as_ref(), Ok(&expected), "{piece} bytes at a time");
    }
}

/// Of a message that is there twice, the later one's fields count, and the earlier one's that it lacks.
#[tokio::test]
async fn repeated_messages_are_merged() {
    let entry = b"\x0a\x06\x0a\x01k\x12\x01v";
    let (ten, a_day) = (b"\x12\x02\x08\x0a", b"\x12\x02\x10\x04");
    let descriptor = [&entry[..], ten, a_day, b"\x1a\x00", b"\x1a\x02\x08\x03"].concat();
    let length = u8::try_from(descriptor.len()).unwrap();
    let message = [b"\x0a\x02no", b"\x0a\x02rl", &[0x12, length][..], &descriptor].concat();
    let read = RateLimitRequest::decode(&message[..]).unwrap();
    assert_eq!(read, ask("rl [k=v]@10/DAY!3"));
    let observed = answer(&service(), &message).await.unwrap();
    assert_eq!(observed, answer(&service(), &read.encode_to_vec()).await.unwrap());
}

proptest! {
    /// Damaged bytes read alike by us and by the generated type, and where it reads
    /// nothing, nothing is decided. What we write is what it writes.
    #[test]
    fn messages_are_read_and_written_as_the_generated_types_do(
        bytes in damaged(any_request()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let observed = runtime.block_on(answer(&service(), &bytes));
        match RateLimitRequest::decode(&bytes[..]) {
            Ok(read) => {
                let expected = runtime.block_on(answer(&service(), &read.encode_to_vec()));
                prop_assert_eq!(&observed, &expected);
            }
            Err(_) => prop_assert_eq!(&observed, &Err(Code::Internal)),
        }
        if let Ok(observed) = observed {
            let response = RateLimitResponse::decode(&observed[5..]).unwrap();
            prop_assert_eq!(framed(0, &response.encode_to_vec()), observed);
        }
    }
}
