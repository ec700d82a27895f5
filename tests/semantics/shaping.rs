//! `Reserve`, `CancelReservation`, `Debit`, `at_most`, `id` and `wait`, through the real server, on every store.

use prost_types::Duration;
use tonic::transport::Channel;
use tonic::{Code, Status};
use weir_config::{Config, StoreConfig};
use weir_core::algorithm::{Algorithm, Rate};
use weir_core::strategy::{FailurePolicy, Field, Override, Resources, Rules, Strategy};
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;
use weir_proto::v1::{
    CancelReservationRequest, DebitRequest, Reason, ReserveRequest, ReserveResponse, ShouldAllowRequest,
    ShouldAllowResponse,
};
use weir_units::Micros;

use crate::support::requests::About as _;
use crate::support::rules::strategy;
use crate::support::server::{Server, ask_under, config};

const SECOND: u64 = 1_000_000;

type Client = RateLimitServiceClient<Channel>;

weir_testing::on_every_store!(holds_on);

async fn holds_on(store: StoreConfig) {
    let base = config();
    let server = Server::ready(Config { store, rules: rules(), ..base });
    let mut client = server.client().await;
    reservations_wait_for_their_turn(&mut client).await;
    a_cancelled_reservation_gives_back_what_no_later_one_needs(&mut client).await;
    a_repeated_cancellation_is_told_so(&mut client).await;
    no_call_overtakes_in_a_held_log(&mut client).await;
    a_held_log_holds_a_bounded_number(&mut client).await;
    a_queue_says_how_long_to_wait(&mut client, "queue", "paced", "bob").await;
    // An override gives a bucket the algorithm of a queue: its answers had no wait.
    a_queue_says_how_long_to_wait(&mut client, "bucket", "paced", "patient").await;
    as_much_as_fits_is_granted(&mut client).await;
    a_charge_with_an_id_is_made_once(&mut client).await;
    a_debit_is_bounded_and_made_once(&mut client).await;
    denied_calls_that_count_leave_less_room_for_debits(&mut client).await;
    mistakes_are_named_and_charge_nothing(&mut client).await;
}

async fn reservations_wait_for_their_turn(client: &mut Client) {
    for (strategy, wait) in [("bucket", 1), ("cycles", 2), ("after", 1), ("warm", 0)] {
        let first = reserve(client, strategy, "turn", "a", 2).await.unwrap();
        assert_eq!((first.wait, first.applied), (span(0), true), "{strategy}");
        assert_eq!(first.decision.as_ref().unwrap().granted, Some(2), "{strategy}");
        if strategy == "warm" {
            continue;
        }
        let second = reserve(client, strategy, "turn", "b", 1).await.unwrap();
        let at_least =
            second.wait.as_ref().map_or(0, |wait| wait.seconds * 1_000_000_000 + i64::from(wait.nanos));
        // After burst and cost 2 on the real clock a little has drained.
        if strategy != "after" {
            assert!(at_least > (wait - 1) * 1_000_000_000, "{strategy}: {second:?}");
        }
        let again = reserve(client, strategy, "turn", "b", 1).await.unwrap();
        assert!(!again.applied && again.decision.unwrap().allowed, "{strategy}");
    }
}

async fn a_cancelled_reservation_gives_back_what_no_later_one_needs(client: &mut Client) {
    for id in ["a", "b", "c", "d"] {
        assert!(reserve(client, "slow", "cancel", id, 1).await.unwrap().applied);
    }
    let cancelled = cancel(client, "slow", "cancel", "d").await.unwrap();
    assert!(cancelled);
    assert!(!cancel(client, "slow", "cancel", "d").await.unwrap(), "it is free");
    assert!(!cancel(client, "slow", "cancel", "nobody").await.unwrap());
    // The place of `d` is free again, so that the wait is that of the fourth.
    let next = reserve(client, "slow", "cancel", "e", 1).await.unwrap();
    let seconds = next.wait.unwrap().seconds;
    assert!((25..=30).contains(&seconds), "{seconds}");
}

/// A caller whose answer was lost repeats the call, and must tell "it was me" from "there was nothing".
async fn a_repeated_cancellation_is_told_so(client: &mut Client) {
    for strategy in ["slow", "held"] {
        for id in ["a", "b", "c"] {
            assert!(reserve(client, strategy, "repeated", id, 1).await.unwrap().applied, "{strategy}");
        }
        assert_eq!(cancellation(client, strategy, "repeated", "c").await, (true, false), "{strategy}");
        for _ in 0..2 {
            assert_eq!(cancellation(client, strategy, "repeated", "c").await, (false, true), "{strategy}");
        }
        assert_eq!(cancellation(client, strategy, "repeated", "nobody").await, (false, false), "{strategy}");
        // Its start has come: nothing is cancelled, now or before.
        assert_eq!(cancellation(client, strategy, "repeated", "a").await, (false, false), "{strategy}");
        // The id is free. What it reserves now was not cancelled.
        let again = reserve(client, strategy, "repeated", "c", 1).await.unwrap();
        assert!(again.applied && again.decision.unwrap().allowed, "{strategy}");
        assert_eq!(cancellation(client, strategy, "repeated", "c").await, (true, false), "{strategy}");
    }
}

async fn no_call_overtakes_in_a_held_log(client: &mut Client) {
    let plain = ask_under("held", "overtake", "bob");
    assert!(allow(client, ShouldAllowRequest { cost: Some(2), ..plain.clone() }).await.allowed);
    let held = reserve(client, "held", "overtake", "h", 1).await.unwrap();
    assert!(held.wait.unwrap().seconds >= 30);
    let denied = allow(client, plain.clone()).await;
    assert!(!denied.allowed && denied.remaining == Some(0));
    assert!(!allow(client, ShouldAllowRequest { cost: Some(0), ..plain }).await.allowed);
    assert!(cancel(client, "held", "overtake", "h").await.unwrap());
}

/// Each call about a held log reads all its reservations, so one consumer could make Redis slow for all others.
async fn a_held_log_holds_a_bounded_number(client: &mut Client) {
    let plain = ask_under("few", "bounded", "bob");
    assert!(allow(client, ShouldAllowRequest { cost: Some(5), ..plain }).await.allowed);
    for id in ["a", "b"] {
        assert!(reserve(client, "few", "bounded", id, 1).await.unwrap().applied, "{id}");
    }
    let refused = reserve(client, "few", "bounded", "c", 1).await.unwrap();
    let decision = refused.decision.unwrap();
    assert_eq!((decision.allowed, decision.reason(), refused.applied), (false, Reason::Limited, false));
    let until_the_first_is_due = decision.retry_after.unwrap().seconds;
    assert!((30..=40).contains(&until_the_first_is_due), "{until_the_first_is_due}");
    assert!(
        reserve(client, "few", "bounded", "a", 1).await.unwrap().decision.unwrap().allowed,
        "it is known"
    );
    assert!(cancel(client, "few", "bounded", "b").await.unwrap());
    assert!(reserve(client, "few", "bounded", "c", 1).await.unwrap().applied, "there is a place again");
}

async fn a_queue_says_how_long_to_wait(client: &mut Client, strategy: &str, resource: &str, consumer: &str) {
    let ask = ask_under(strategy, resource, consumer);
    let first = allow(client, ask.clone()).await;
    assert_eq!((first.allowed, first.limit, first.wait), (true, Some(3), span(0)));
    let second = allow(client, ask.clone()).await.wait.unwrap();
    assert!((9..=10).contains(&second.seconds), "{second:?}");
    assert!(allow(client, ask.clone()).await.allowed);
    let full = allow(client, ask).await;
    assert_eq!((full.allowed, full.reason()), (false, Reason::Limited));
}

async fn as_much_as_fits_is_granted(client: &mut Client) {
    let ask = ShouldAllowRequest { at_most: true, cost: Some(4), ..ask_under("both", "partly", "bob") };
    let granted = async |client: &mut Client| {
        let answer = allow(client, ask.clone()).await;
        (answer.allowed, answer.granted, answer.applied)
    };
    assert_eq!(granted(client).await, (true, Some(4), None));
    assert_eq!(granted(client).await, (true, Some(1), None));
    assert_eq!(granted(client).await, (false, Some(0), None));
}

async fn a_charge_with_an_id_is_made_once(client: &mut Client) {
    let ask = |cost, id: &str| ShouldAllowRequest {
        cost: Some(cost),
        id: id.to_owned(),
        ..ask_under("both", "once", "bob")
    };
    let first = allow(client, ask(3, "x")).await;
    assert_eq!((first.remaining, first.applied), (Some(2), Some(true)));
    let again = allow(client, ask(3, "x")).await;
    assert_eq!(
        (again.allowed, again.remaining, again.granted, again.applied),
        (true, Some(2), Some(3), Some(false))
    );
    is_refused(
        client.should_allow(ask(2, "x")).await.unwrap_err(),
        Code::AlreadyExists,
        "id is known with another cost, 3; a call with another cost needs another id",
    );
    let denied = allow(client, ask(5, "y")).await;
    assert_eq!((denied.allowed, denied.applied), (false, Some(false)));
    assert!(allow(client, ask(2, "y")).await.allowed, "a denial leaves no trace");
    // The denial of a plain call is cached. A known id is answered as it was decided, whatever is known of the limits.
    let plain = || ShouldAllowRequest { id: String::new(), ..ask(1, "") };
    for _ in 0..3 {
        assert!(!allow(client, plain()).await.allowed);
    }
    let again = allow(client, ask(3, "x")).await;
    assert_eq!((again.allowed, again.granted, again.applied), (true, Some(3), Some(false)));
}

async fn a_debit_is_bounded_and_made_once(client: &mut Client) {
    let request = |cost, id: &str| DebitRequest {
        cost: Some(cost),
        id: id.to_owned(),
        ..DebitRequest::about("both", "debits", "bob")
    };
    let debit = async |client: &mut Client, cost, id: &str| {
        let answer = client.debit(request(cost, id)).await.unwrap().into_inner();
        let limits = answer.limits.iter().map(|limit| (limit.charged, limit.remaining)).collect::<Vec<_>>();
        (answer.applied, answer.fitted, limits)
    };
    assert_eq!(debit(client, 3, "a").await, (true, true, vec![(3, 2), (3, 5)]));
    assert_eq!(debit(client, 3, "a").await, (false, true, vec![(3, 2), (3, 5)]));
    // The first may go three into debt, the second as far as can be counted.
    assert_eq!(debit(client, 1_000, "b").await, (true, false, vec![(5, 0), (1_000, 0)]));
    assert_eq!(debit(client, 1, "").await, (true, false, vec![(0, 0), (1, 0)]));
    assert_eq!(debit(client, 1_000, "b").await, (false, false, vec![(5, 0), (1_000, 0)]));
    let other = client.debit(request(4, "a")).await.unwrap_err();
    is_refused(
        other,
        Code::AlreadyExists,
        "id is known with another cost, 3; a call with another cost needs another id",
    );
    let nothing = client.debit(request(0, "")).await.unwrap_err();
    let why = "cost is 0: it must be at least 1: nothing was used that could be charged";
    is_refused(nothing, Code::InvalidArgument, why);
}

/// The refusal names what is needed, and the strategy with the limits that it has instead.
fn cannot(status: Status, strategy: &str, needs: &str) {
    let wanted = format!("{needs}; strategy `{strategy}` has the limits `");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().starts_with(&wanted), "{}", status.message());
}

/// A debit charges up to `max_debt` above the limit, whatever denied calls were charged before. It once charged a window at
/// most one above its limit; only a log keeps no more than that.
async fn denied_calls_that_count_leave_less_room_for_debits(client: &mut Client) {
    for (strategy, fresh, used) in [("denials", 4, 1), ("denials_log", 3, 1)] {
        let debit = async |client: &mut Client, consumer: &str| {
            let request = DebitRequest { cost: Some(7), ..DebitRequest::about(strategy, "debits", consumer) };
            client.debit(request).await.unwrap().into_inner().limits[0].charged
        };
        assert_eq!(debit(client, "fresh").await, fresh, "{strategy}");
        for _ in 0..3 {
            allow(client, ask_under(strategy, "debits", "used")).await;
        }
        assert_eq!(debit(client, "used").await, used, "{strategy}");
    }
}

async fn mistakes_are_named_and_charge_nothing(client: &mut Client) {
    let needs = "a reservation needs a strategy of exactly one limit, which is a token_bucket, a warm_up, a sliding_log \
                 with `hold: true`, or an interval_refill whose refill is at most its capacity";
    for strategy in ["both", "queue", "log", "window"] {
        cannot(reserve(client, strategy, "wrong", "x", 1).await.unwrap_err(), strategy, needs);
    }
    let cancels = "a reservation can be cancelled where the strategy has exactly one limit, which is a token_bucket \
                   without `charge_after`, a sliding_log with `hold: true`, or an interval_refill whose refill is at \
                   most its capacity";
    for strategy in ["after", "warm", "both"] {
        let status = cancel(client, strategy, "wrong", "x").await.unwrap_err();
        is_refused(status, Code::FailedPrecondition, cancels);
    }
    let request = |max_wait: Option<Duration>, id: &str| ReserveRequest {
        max_wait,
        ..reservation("held", "wrong", id, 1)
    };
    for (request, message) in [
        (request(span(1), ""), "id is \"\": it must be 1 to 128 bytes"),
        (
            request(span(61), "x"),
            "max_wait is 61s: it must be at most 60s, the max_reservation of strategy `held`",
        ),
        (
            request(span(45), "x"),
            "max_wait is 45s: it must be at most 40s, the window of the held log of strategy `held`",
        ),
        (
            request(Some(Duration { seconds: -1, nanos: 0 }), "x"),
            "max_wait is -1 s and 0 ns: it must not be negative, and have less than 10^9 ns",
        ),
        (
            request(Some(Duration { seconds: i64::MAX, nanos: 5 }), "x"),
            "max_wait is 9223372036854775807 s and 5 ns: a span has at most 315576000000 s",
        ),
    ] {
        is_refused(client.reserve(request).await.unwrap_err(), Code::InvalidArgument, message);
    }
    let counted = ShouldAllowRequest { at_most: true, ..ask_under("counted", "wrong", "bob") };
    let status = client.should_allow(counted.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    let peek = ShouldAllowRequest { peek: true, id: "x".to_owned(), at_most: false, ..counted.clone() };
    is_refused(
        client.should_allow(peek).await.unwrap_err(),
        Code::InvalidArgument,
        "id is \"x\": it cannot stand beside peek, which charges nothing",
    );
    let long = ShouldAllowRequest { id: "x".repeat(129), at_most: false, ..counted.clone() };
    assert_eq!(client.should_allow(long).await.unwrap_err().code(), Code::InvalidArgument);
    let left = allow(client, ShouldAllowRequest { at_most: false, peek: true, ..counted }).await;
    assert_eq!(left.remaining, Some(5), "nothing was charged");
}

fn is_refused(status: Status, code: Code, message: &str) {
    assert_eq!((status.code(), status.message()), (code, message));
}

fn span(seconds: i64) -> Option<Duration> {
    Some(Duration { seconds, nanos: 0 })
}

async fn allow(client: &mut Client, request: ShouldAllowRequest) -> ShouldAllowResponse {
    client.should_allow(request).await.unwrap().into_inner()
}

fn reservation(strategy: &str, resource: &str, id: &str, cost: u64) -> ReserveRequest {
    ReserveRequest {
        cost: Some(cost),
        max_wait: span(40),
        id: id.to_owned(),
        ..ReserveRequest::about(strategy, resource, "bob")
    }
}

async fn reserve(
    client: &mut Client,
    strategy: &str,
    resource: &str,
    id: &str,
    cost: u64,
) -> Result<ReserveResponse, Status> {
    Ok(client.reserve(reservation(strategy, resource, id, cost)).await?.into_inner())
}

async fn cancel(client: &mut Client, strategy: &str, resource: &str, id: &str) -> Result<bool, Status> {
    let request = cancelling(strategy, resource, id);
    Ok(client.cancel_reservation(request).await?.into_inner().cancelled)
}

/// Returns whether this call has cancelled the reservation, and whether an earlier one had.
async fn cancellation(client: &mut Client, strategy: &str, resource: &str, id: &str) -> (bool, bool) {
    let request = cancelling(strategy, resource, id);
    let answer = client.cancel_reservation(request).await.unwrap().into_inner();
    (answer.cancelled, answer.cancelled_before)
}

fn cancelling(strategy: &str, resource: &str, id: &str) -> CancelReservationRequest {
    CancelReservationRequest {
        id: id.to_owned(),
        ..CancelReservationRequest::about(strategy, resource, "bob")
    }
}

/// Their policy would let every call pass.
fn rules() -> Rules {
    let per_second = Rate { count: 1, period: Micros(SECOND) };
    let per_ten = Rate { count: 1, period: Micros(10 * SECOND) };
    let hour = Micros(3600 * SECOND);
    let bucket = Algorithm::bucket(5, Rate { count: 1, period: hour }).unwrap();
    let window = Algorithm::fixed_window(8, hour, false, false).unwrap();
    let each: &[Field] = &[Field::Resource, Field::Consumer];
    let one = |name: &str, algorithm: Algorithm| (name.to_owned(), vec![("each", algorithm)]);
    let all = vec![
        one("bucket", Algorithm::bucket(2, per_second).unwrap()),
        one("cycles", Algorithm::interval_refill(2, 2, Micros(2 * SECOND), false).unwrap()),
        one("after", Algorithm::charge_after(1, per_second, 10).unwrap()),
        one("warm", Algorithm::warm_up(per_second, Micros(10 * SECOND), 3, None).unwrap()),
        one("slow", Algorithm::bucket(1, per_ten).unwrap()),
        one("few", Algorithm::held_log(5, Micros(40 * SECOND), 2).unwrap()),
        one("held", Algorithm::held_log(2, Micros(40 * SECOND), 100).unwrap()),
        one("queue", Algorithm::leaky_queue(2, per_ten, 0).unwrap()),
        one("log", Algorithm::sliding_log(2, hour).unwrap()),
        one("window", window),
        one("counted", Algorithm::fixed_window(5, hour, false, true).unwrap()),
        one("denials", Algorithm::fixed_window(2, hour, false, true).unwrap().with_max_debt(Some(2))),
        one("denials_log", Algorithm::strict_log(2, hour, true, Micros(0)).unwrap().with_max_debt(Some(2))),
        ("both".to_owned(), vec![("bucket", bucket.with_max_debt(Some(3))), ("window", window)]),
    ];
    let strategies = all.into_iter().map(|(name, limits)| {
        let limits: Vec<_> = limits.iter().map(|(limit, algorithm)| (*limit, each, *algorithm)).collect();
        strategy(&name, &limits, FailurePolicy::Allow)
    });
    let strategies: Vec<Strategy> = strategies.collect();
    let mut queued = strategies[0].clone();
    queued.override_limit("each", Algorithm::leaky_queue(2, per_ten, 0).unwrap()).unwrap();
    let queued = Override { consumer: "patient".to_owned(), resource: "*".to_owned(), strategy: queued };
    Rules::new(strategies, Resources::default()).with_overrides([queued])
}
