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
  uneven: { limits: [{ name: uneven, per: [consumer], bucketed_window: { limit: 1000, window: 15s, accuracy: 0.25 } }] }
  two:
    limits:
      - { name: slots, per: [consumer], bucketed_window: { limit: 9, window: 1m, buckets: 6 } }
      - { name: log, per: [consumer], sliding_log: { limit: 9, window: 1m } }
"#;

weir_testing::on_every_store!(holds_on);

fn count_ms(strategy: &str, limit: &str, ms: i64) -> CountRequest {
    let (seconds, nanos) = (ms / 1_000, ms % 1_000 * 1_000_000);
    let interval = Some(prost_types::Duration { seconds, nanos: nanos as i32 });
    CountRequest { interval, ..count(strategy, limit, 0) }
}

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
        for strategy in ["hour", "minute", "uneven"] {
            let ask = ShouldAllowRequest { cost: Some(cost), ..ask_under(strategy, "api", "bob") };
            assert!(client.should_allow(ask).await.unwrap().into_inner().allowed);
        }
    }
    server.clock.set(Micros(BASE.0 + 62_500_000));
    for (strategy, over_ms, used, span_ms) in [
        ("hour", 0, 0, 500),
        ("hour", 240, 11, 1_500),
        ("hour", 1_000, 11, 1_500),
        ("hour", 1_200, 11, 2_500),
        ("hour", 36_000, 11, 36_500),
        ("hour", 37_000, 18, 37_500),
        ("hour", 3_600_000, 23, 3_600_500),
        ("minute", 0, 11, 2_500),
        ("minute", 30_000, 11, 32_500),
        ("minute", 39_000, 18, 42_500),
        // A limit that is not strict keeps no more.
        ("minute", 60_000, 18, 52_500),
        // Parts of 4, 4, 4 and 3 s.
        ("uneven", 0, 11, 2_500),
        ("uneven", 1_000, 11, 9_500),
        ("uneven", 15_000, 11, 17_500),
    ] {
        let counted = client.count(count_ms(strategy, "", over_ms)).await.unwrap().into_inner();
        let span = counted.span.unwrap();
        let got = (counted.used, span.seconds * 1_000 + i64::from(span.nanos) / 1_000_000);
        assert_eq!(got, (used, span_ms), "{strategy} over {over_ms} ms");
        assert!(span_ms >= over_ms || strategy == "minute");
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
            count_ms("hour", "", 3_600_001),
            Code::InvalidArgument,
            "interval is 3600001ms: it must be at most 3600s, the window of the limit",
        ),
        (count("minute", "", 3_600), Code::InvalidArgument, "interval is 3600s: it must be at most 60s"),
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
