//! Behaviour that no line of a case can express: lengths, many descriptors, every unit.

use weir_envoy::settings::EnvoyConfig;
use weir_proto::envoy::service::ratelimit::v3::RateLimitRequest;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;
use weir_units::Micros;

use super::notation::{answer, request};
use super::{Client, client, cluster, memory, redis, serve};

#[tokio::test]
async fn windows_of_every_unit_end_where_the_references_do() {
    let server = serve(memory(), EnvoyConfig::default());
    let mut client = client(&server).await;
    // 2222 seconds past a moment that is the start of no window but a second's.
    let now = 1_700_000_000 + 2222;
    server.clock.set(Micros::from_secs(now));
    let day = 86_400;
    let units = [
        ("s", 1, "SECOND"),
        ("m", 60, "MINUTE"),
        ("h", 3600, "HOUR"),
        ("d", day, "DAY"),
        ("w", 7 * day, "WEEK"),
        ("mo", 30 * day, "MONTH"),
        ("y", 365 * day, "YEAR"),
    ];
    for (key, length, name) in units {
        let observed = ask(&mut client, request(&format!("u [{key}=v]"))).await;
        assert_eq!(observed, format!("OK | OK 2 of 3/{name} {}s", length - now % length));
        let observed = ask(&mut client, request(&format!("u [other{key}=v]@5/{name}"))).await;
        // Envoy's unit for limits in requests got its week later than the answers.
        assert_eq!(observed, format!("OK | OK 4 of 5/{name} {}s", length - now % length));
    }
}

/// Envoy drops fractions of a second, and a client that comes back after the rest must not be too early.
#[tokio::test]
async fn a_second_that_has_begun_counts_whole() {
    for store in [memory(), redis()] {
        let server = serve(store, EnvoyConfig::default());
        let mut client = client(&server).await;
        let start = server.clock.now().0;
        for (past, seconds) in [(0, 60), (1, 60), (1_000_000, 59), (59_000_001, 1), (59_999_999, 1)] {
            server.clock.set(Micros(start + past));
            let observed = ask(&mut client, request(&format!("another [key2=rounded{past}]"))).await;
            assert_eq!(observed, format!("OK | OK 19 of 20/MINUTE {seconds}s"), "{past}");
        }
    }
}

#[tokio::test]
async fn texts_of_any_length_have_counters_of_their_own() {
    for store in [memory(), redis(), cluster()] {
        let server = serve(store, EnvoyConfig::default());
        let mut client = client(&server).await;
        let of = |value: &str| request(&format!("another [key3={value}]"));
        // Around the length from which keys have a digest, and at the longest.
        for length in [480, 512, 513, 65_536] {
            let (one, other) = ("x".repeat(length), "x".repeat(length - 1) + "y");
            for value in [&one, &other] {
                assert_eq!(ask(&mut client, of(value)).await, "OK | OK 9 of 10/HOUR 3600s", "{length}");
            }
            assert_eq!(ask(&mut client, of(&one)).await, "OK | OK 8 of 10/HOUR 3600s", "{length}");
        }
        let observed = ask(&mut client, of(&"x".repeat(65_537))).await;
        let shown = format!("{}…", "x".repeat(64));
        let expected = format!(
            "InvalidArgument: descriptors.entries.value is \"{shown}\": it has 65537 bytes; at most 65536 fit"
        );
        assert_eq!(observed, expected);
    }
}

/// More than are asked in one go without a queue.
#[tokio::test]
async fn many_descriptors_of_one_counter_are_decided_in_order() {
    for store in [memory(), redis(), cluster()] {
        let server = serve(store, EnvoyConfig::default());
        let mut client = client(&server).await;
        for (count, expected) in [(40, 10), (1000, 0)] {
            let asked = request(&format!("another {}", "[key3=ordered] ".repeat(count)));
            let answer = client.should_rate_limit(asked).await.unwrap().into_inner();
            let codes = answer.statuses.iter().map(|status| status.code() == Code::Ok);
            assert!(codes.eq((0..count).map(|index| index < expected)), "{count}");
        }
    }
}

async fn ask(client: &mut Client, asked: RateLimitRequest) -> String {
    answer(&client.should_rate_limit(asked).await.map(tonic::Response::into_inner))
}

#[tokio::test]
async fn headers_have_the_names_that_are_configured() {
    let named = EnvoyConfig {
        headers: true,
        limit_header: "X-Limit".to_owned(),
        reset_header: "x-reset".to_owned(),
        ..EnvoyConfig::default()
    };
    let server = serve(memory(), named);
    let asked = request("another [key2=v] [key3=v]");
    let answered = client(&server).await.should_rate_limit(asked).await.unwrap().into_inner();
    let headers = answered.response_headers_to_add.iter().map(|header| (&*header.key, &*header.value));
    // Of the descriptor that has the least left.
    let reset = answered.statuses[1].duration_until_reset.as_ref().unwrap().seconds.to_string();
    let expected = [("X-Limit", "10"), ("RateLimit-Remaining", "9"), ("x-reset", &*reset)];
    assert_eq!(headers.collect::<Vec<_>>(), expected);
}
