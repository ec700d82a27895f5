//! The contract of `Count`, through the real server, on every store.

use tonic::Code;
use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::{CountRequest, ShouldAllowRequest};
use weir_units::Micros;

use crate::support::server::{BASE, Server, ask_under, config};

const RULES: &str = r#"
strategies:
  hour: { limits: [{ name: hour, per: [consumer], bucketed_window: { limit: 1000, window: 1h, buckets: 3600 } }] }
  minute: { limits: [{ name: minute, per: [consumer], bucketed_window: { limit: 1000, window: 1m, buckets: 6, strict: false } }] }
  two:
    limits:
      - { name: slots, per: [consumer], bucketed_window: { limit: 9, window: 1m, buckets: 6 } }
      - { name: log, per: [consumer], sliding_log: { limit: 9, window: 1m } }
"#;

weir_testing::on_every_store!(holds_on);

fn count(strategy: &str, limit: &str, seconds: i64) -> CountRequest {
    CountRequest {
        resource: "api".to_owned(),
        consumer: "bob".to_owned(),
        strategy: strategy.to_owned(),
        limit: limit.to_owned(),
        interval: Some(prost_types::Duration { seconds, nanos: 0 }),
        ..CountRequest::default()
    }
}

async fn holds_on(store: StoreConfig) {
    let rules = Config::parse(RULES, "weir.yaml", &ConfigOverrides::default()).unwrap().rules;
    let server = Server::ready(Config { store, rules, ..config() });
    let mut client = server.client().await;
    for (second, cost) in [(0, 5), (25, 7), (61, 11)] {
        server.clock.set(Micros(BASE.0 + second * 1_000_000));
        for strategy in ["hour", "minute"] {
            let ask = ShouldAllowRequest { cost: Some(cost), ..ask_under(strategy, "api", "bob") };
            assert!(client.should_allow(ask).await.unwrap().into_inner().allowed);
        }
    }
    server.clock.set(Micros(BASE.0 + 62_500_000));
    for (strategy, seconds, used, span_ms) in [
        ("hour", 0, 0, 500),
        ("hour", 1, 11, 1_500),
        ("hour", 36, 11, 36_500),
        ("hour", 37, 18, 37_500),
        ("hour", 4_000, 23, 3_600_500),
        ("minute", 0, 11, 2_500),
        ("minute", 39, 11, 32_500),
        ("minute", 40, 18, 42_500),
        ("minute", 3_600, 18, 52_500),
    ] {
        let counted = client.count(count(strategy, "", seconds)).await.unwrap().into_inner();
        let span = counted.span.unwrap();
        let got = (counted.used, span.seconds * 1_000 + i64::from(span.nanos) / 1_000_000);
        assert_eq!(got, (used, span_ms), "{strategy} over {seconds} s");
    }
    assert_eq!(client.count(count("two", "slots", 1)).await.unwrap().into_inner().used, 0);
    for (request, code, says) in [
        (count("two", "", 1), Code::InvalidArgument, "limit is \"\": strategy `two` has several limits"),
        (
            count("two", "lok", 1),
            Code::InvalidArgument,
            "limit is \"lok\": strategy `two` has only slots, log",
        ),
        (count("two", "log", 1), Code::FailedPrecondition, "only bucketed_window does"),
        (count("hour", "", -1), Code::InvalidArgument, "interval is -1 s and 0 ns: it must be from 0 s to"),
        (
            CountRequest { interval: None, ..count("hour", "", 0) },
            Code::InvalidArgument,
            "interval is not set",
        ),
        (CountRequest { consumer: String::new(), ..count("hour", "", 0) }, Code::InvalidArgument, "consumer"),
        (count("ours", "", 1), Code::NotFound, "there is no strategy `ours`"),
    ] {
        let status = client.count(request).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(says), "{status}");
    }
}
