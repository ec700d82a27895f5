use prost_types::{Duration, Timestamp};
use tonic::Code;
use weir_proto::v1::{GetUsageRequest, ShouldAllowBatchRequest, ShouldAllowRequest};
use weir_units::Micros;

use super::{Totals, get, key, totals, usage_of};
use crate::support::server::{BASE, Server, ask, ask_under, config};

const BASE_SECOND: i64 = (BASE.0 / 1_000_000) as i64;

fn at(second: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds: BASE_SECOND + second, nanos: 0 })
}

fn seconds(seconds: i64) -> Option<Duration> {
    Some(Duration { seconds, nanos: 0 })
}

#[tokio::test]
async fn calls_and_cost_are_counted_by_strategy_pattern_and_outcome() {
    let server = Server::start(config());
    let (mut client, mut usage) = (server.client().await, usage_of(&server).await);
    assert_eq!(get(&mut usage, GetUsageRequest::default()).await.series, []);
    let with_cost = |request: ShouldAllowRequest, cost| ShouldAllowRequest { cost: Some(cost), ..request };
    let mut expected = Totals::new();
    let mut requests = Vec::new();
    for index in 0..7 {
        let consumer = format!("c{index}");
        requests.push(with_cost(ask("burst/a", &consumer), 3));
        requests.push(with_cost(ask("burst/b", &consumer), 4));
        // The bucket of 5 has 2 left, or 1.
        requests.push(with_cost(ask("burst/a", &consumer), 3));
        requests.push(with_cost(ask_under("open", "burst/a", &consumer), 2));
        requests.push(ask_under("closed", "no/pattern", &consumer));
        requests.push(with_cost(ask("burst/c", &consumer), 9));
        requests.push(ShouldAllowRequest { peek: true, ..with_cost(ask("burst/d", &consumer), 5) });
        requests.push(ShouldAllowRequest { at_most: true, ..with_cost(ask("burst/e", &consumer), 8) });
        let once = ShouldAllowRequest { id: "1".to_owned(), ..with_cost(ask("burst/f", &consumer), 2) };
        requests.extend([once.clone(), once]);
    }
    expected.insert(key("burst", "burst/*", "allowed"), (7 * 4, 7 * (3 + 4 + 5 + 2)));
    expected.insert(key("burst", "burst/*", "peeked"), (7, 0));
    expected.insert(key("burst", "burst/*", "repeated"), (7, 0));
    expected.insert(key("burst", "burst/*", "denied"), (7, 7 * 3));
    expected.insert(key("burst", "burst/*", "never"), (7, 7 * 9));
    expected.insert(key("open", "burst/*", "allowed"), (7, 7 * 2));
    expected.insert(key("closed", "", "allowed"), (7, 7));
    for request in &requests {
        client.should_allow(request.clone()).await.unwrap();
    }
    let answer = get(&mut usage, GetUsageRequest::default()).await;
    assert_eq!(totals(&answer), expected);
    assert_eq!(answer.incomplete, "");
    assert_eq!(answer.nodes.len(), 1);
    // Calls that arrive together are counted like those that arrive alone.
    let batch = requests.iter().filter(|one| one.resource == "no/pattern").cloned().collect();
    client.should_allow_batch(ShouldAllowBatchRequest { requests: batch }).await.unwrap();
    *expected.get_mut(&key("closed", "", "allowed")).unwrap() = (14, 14);
    assert_eq!(totals(&get(&mut usage, GetUsageRequest::default()).await), expected);
    let only = GetUsageRequest {
        strategy: Some("burst".to_owned()),
        resource_pattern: Some("burst/*".to_owned()),
        outcome: Some("denied".to_owned()),
        ..GetUsageRequest::default()
    };
    expected.retain(|name, _| *name == key("burst", "burst/*", "denied"));
    assert_eq!(totals(&get(&mut usage, only).await), expected);
    let metrics = server.get("/metrics").1;
    assert!(
        metrics.contains("weir_decisions_total{strategy=\"burst\",outcome=\"allowed\"} 28\n"),
        "{metrics}"
    );
}

#[tokio::test]
async fn points_have_the_length_of_the_step_and_lie_where_calls_were() {
    let server = Server::start(config());
    let (mut client, mut usage) = (server.client().await, usage_of(&server).await);
    let now = |second: u64| server.clock.set(Micros(BASE.0 + second * 1_000_000));
    for (second, calls) in [(0, 3), (1, 1), (10, 2), (59, 4), (60, 5)] {
        // What was counted until now belongs to the second in which the counters were read last.
        get(&mut usage, GetUsageRequest::default()).await;
        now(second);
        get(&mut usage, GetUsageRequest::default()).await;
        for index in 0..calls {
            client.should_allow(ask_under("open", "x", &format!("{second}-{index}"))).await.unwrap();
        }
    }
    let request = |from, to, step| GetUsageRequest {
        from: at(from),
        to: at(to),
        step: seconds(step),
        ..Default::default()
    };
    let mut points = async |request| {
        let answer = get(&mut usage, request).await;
        assert!(answer.series.len() <= 1);
        let series = answer.series.into_iter().flat_map(|series| series.points);
        series.map(|point| (point.start.unwrap().seconds - BASE_SECOND, point.calls)).collect::<Vec<_>>()
    };
    assert_eq!(points(request(0, 61, 1)).await, [(0, 3), (1, 1), (10, 2), (59, 4), (60, 5)]);
    assert_eq!(points(request(0, 61, 30)).await, [(0, 6), (30, 4), (60, 5)]);
    assert_eq!(points(request(1, 60, 10)).await, [(1, 3), (51, 4)]);
    assert_eq!(points(request(2, 10, 1)).await, []);
    now(7_200);
    assert_eq!(points(request(0, 120, 60)).await, [(0, 10), (60, 5)]);
    now(3 * 86_400);
    assert_eq!(points(request(0, 7_200, 3_600)).await, [(0, 15)]);
}

/// Otherwise everything would be counted in the last second before the step, which no question asks for.
#[tokio::test]
async fn a_clock_that_was_years_ahead_is_followed_back() {
    let server = Server::start(config());
    let (mut client, mut usage) = (server.client().await, usage_of(&server).await);
    let mut ask_so_often = async |calls: u64| {
        for index in 0..calls {
            client.should_allow(ask_under("open", "x", &index.to_string())).await.unwrap();
        }
        let series = get(&mut usage, GetUsageRequest::default()).await.series;
        series.iter().map(|one| one.calls).sum::<u64>()
    };
    assert_eq!(ask_so_often(3).await, 3);
    server.clock.step(Micros(BASE.0 - 1_800_000_000));
    assert_eq!(ask_so_often(2).await, 0, "half an hour: counted in the last second before the step");
    server.clock.set(Micros(BASE.0 + 1_000_000));
    assert_eq!(ask_so_often(0).await, 5);
    server.clock.step(Micros(BASE.0 - 10 * 365 * 86_400_000_000));
    assert_eq!(ask_so_often(4).await, 4, "it has begun anew");
}

#[tokio::test]
async fn what_cannot_be_answered_names_the_field_and_the_bound() {
    let server = Server::start(config());
    let mut usage = usage_of(&server).await;
    let mut refused = async |request| {
        let status = usage.get_usage(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    };
    let base = GetUsageRequest { from: at(0), to: at(3_600), ..Default::default() };
    let step = refused(GetUsageRequest { to: at(20_000), step: seconds(1), ..base.clone() }).await;
    assert_eq!(step, "step is 1s: 20000 points from `from` to `to`: at most 10000");
    let step = refused(GetUsageRequest { step: seconds(-1), ..base.clone() }).await;
    assert_eq!(step, "step is -1 s and 0 ns: it must be at least 1s");
    let step = refused(GetUsageRequest { step: seconds(0), ..base.clone() }).await;
    assert!(step.starts_with("step is 0us: it must be a multiple of 1s"), "{step}");
    let from = refused(GetUsageRequest { from: at(3_600), ..base.clone() }).await;
    assert!(from.starts_with("from is 1704070800.000000 s after 1970: it must be before `to`"), "{from}");
    let year = Some(Timestamp { seconds: 253_402_300_800, nanos: 0 });
    let to = refused(GetUsageRequest { to: year, ..base.clone() }).await;
    assert_eq!(to, "to is 253402300800 s and 0 ns: it must be a time from 1970 to the year 9999");
    let outcome = refused(GetUsageRequest { outcome: Some("ok".to_owned()), ..base }).await;
    assert!(outcome.starts_with("outcome is \"ok\": it must be one of allowed, denied"), "{outcome}");
}
