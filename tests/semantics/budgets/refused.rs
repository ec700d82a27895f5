//! Refused calls, which charge nothing.

use prost_types::Duration;
use tonic::{Code, Status};
use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::should_allow_result::Result as Either;
use weir_proto::v1::{Cost, DebitRequest, SettleRequest, ShouldAllowBatchRequest, ShouldAllowRequest};

use super::reserved::reserve;
use crate::support::server::{Server, ask_under, config};

weir_testing::on_every_store!(costs_and_holds_are_refused_where_no_limit_takes_them);

const NO_COSTS: &str = "costs is \"tokens\": strategy `burst` has no named costs; use `cost`";
const NO_HOLDS: &str = "strategy `burst` has no `hold`, so none of its calls is held";
const SPAN: &str = "it must be at least 1us, and have less than 10^9 ns";

fn ask() -> ShouldAllowRequest {
    ask_under("burst", "refused", "bob")
}

fn costs() -> ShouldAllowRequest {
    let costs = [("tokens".to_owned(), Cost { cost: 3, at_least: Some(1) })];
    ShouldAllowRequest { costs: costs.into_iter().collect(), ..ask() }
}

fn held(seconds: i64, nanos: i32) -> ShouldAllowRequest {
    ShouldAllowRequest { hold_for: Some(Duration { seconds, nanos }), id: "x".to_owned(), ..ask() }
}

fn mistakes() -> Vec<(ShouldAllowRequest, Code, String)> {
    let both = "it cannot stand beside costs; `at_least` of a cost grants what fits";
    let invalid = |request, text: String| (request, Code::InvalidArgument, text);
    vec![
        invalid(costs(), NO_COSTS.to_owned()),
        invalid(ShouldAllowRequest { peek: true, ..costs() }, NO_COSTS.to_owned()),
        invalid(ShouldAllowRequest { at_most: true, ..costs() }, format!("at_most is true: {both}")),
        (held(30, 0), Code::FailedPrecondition, NO_HOLDS.to_owned()),
        invalid(held(0, 999), format!("hold_for is 0 s and 999 ns: {SPAN}")),
        invalid(held(-1, 0), format!("hold_for is -1 s and 0 ns: {SPAN}")),
        invalid(held(1, -1), format!("hold_for is 1 s and -1 ns: {SPAN}")),
        invalid(
            ShouldAllowRequest { id: String::new(), ..held(30, 0) },
            "id is \"\": it must be 1 to 128 bytes".to_owned(),
        ),
        invalid(
            ShouldAllowRequest { peek: true, id: String::new(), ..held(30, 0) },
            "hold_for is 30 s and 0 ns: it cannot stand beside peek, which charges nothing".to_owned(),
        ),
    ]
}

/// A strategy whose limits take a named cost, and one whose limits take fixed ones.
const COSTED: &str = "
strategies:
  llm:
    hold: { max: 1m }
    limits: [{ name: output, per: [consumer], cost: output, fixed_window: { limit: 100, window: 1w } }]
  fixed: { limits: [{ name: calls, per: [consumer], cost: 2, fixed_window: { limit: 100, window: 1w } }] }
  held:
    hold: { max: 1m }
    limits: [{ name: tokens, per: [consumer], token_bucket: { rate: 1/1w, burst: 10 } }]
";

fn output(cost: u64, at_least: Option<u64>) -> ShouldAllowRequest {
    let costs = [("output".to_owned(), Cost { cost, at_least })];
    ShouldAllowRequest { costs: costs.into(), ..ask_under("llm", "refused", "bob") }
}

/// Each refusal names the field, its value, and its bound.
#[tokio::test]
async fn what_limits_with_costs_refuse_names_field_value_and_bound() {
    let rules = Config::parse(COSTED, "weir.yaml", &ConfigOverrides::default()).unwrap().rules;
    let server = Server::ready(Config { rules, ..config() });
    let mut client = server.client().await;
    let fixed = ask_under("fixed", "refused", "bob");
    let hold = |seconds| ShouldAllowRequest {
        id: "x".to_owned(),
        hold_for: Some(Duration { seconds, nanos: 0 }),
        ..output(1, None)
    };
    let no_part = "`at_least` of a cost grants what fits";
    let only = [("usd".to_owned(), Cost { cost: 1, at_least: None }), ("output".to_owned(), Cost::default())];
    for (request, text) in [
        (ask_under("llm", "refused", "bob"), "costs is without \"output\": strategy `llm` needs `output`: a forgotten cost is no free call, write 0".to_owned()),
        (ShouldAllowRequest { costs: only.into(), ..output(1, None) }, "costs is \"usd\": strategy `llm` has only `output`".to_owned()),
        (output(1 << 52, None), "costs is \"output\" of 4503599627370496: it must be below 2^52".to_owned()),
        (output(5, Some(0)), "costs is \"output\" of 5 with at_least 0: at_least must be 1 to the cost".to_owned()),
        (output(5, Some(6)), "costs is \"output\" of 5 with at_least 6: at_least must be 1 to the cost".to_owned()),
        (hold(61), "hold_for is 61s: it must be at most 60s, the `max` of `hold`".to_owned()),
        (ShouldAllowRequest { at_most: true, ..output(5, None) }, format!("at_most is true: it cannot stand beside costs; {no_part}")),
        (ShouldAllowRequest { at_most: true, ..fixed.clone() }, format!("at_most is true: it cannot stand beside `cost` or `hold` of the strategy; {no_part}")),
    ] {
        is_refused(&client.should_allow(request).await.unwrap_err(), Code::InvalidArgument, &text);
    }
    for (strategy, text) in [
        ("llm", "strategy `llm` has named costs, and no reservations; ask ShouldAllow with hold_for"),
        (
            "held",
            "strategy `held` has a limit that calls hold, which takes no reservations; ask ShouldAllow with hold_for",
        ),
        // As a window without any cost.
        ("fixed", "a reservation needs a strategy of exactly one limit"),
    ] {
        let refused = client.reserve(reserve(strategy, "y")).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        assert!(refused.message().starts_with(text), "{refused}");
    }
    let peek = ShouldAllowRequest { peek: true, ..output(1, None) };
    let left = client.should_allow(peek).await.unwrap().into_inner();
    assert_eq!((left.limits[0].remaining, left.limits[0].held), (100, 0), "nothing was charged");
}

async fn costs_and_holds_are_refused_where_no_limit_takes_them(store: StoreConfig) {
    let server = Server::ready(Config { store, ..config() });
    let mut client = server.client().await;
    let mistakes = mistakes();
    for (request, code, text) in &mistakes {
        is_refused(&client.should_allow(request.clone()).await.unwrap_err(), *code, text);
    }
    let requests = mistakes.iter().map(|(request, ..)| request.clone()).collect();
    let batch = client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap().into_inner();
    for (result, (_, code, text)) in batch.results.iter().zip(&mistakes) {
        let Some(Either::Error(error)) = &result.result else { panic!("{result:?}") };
        assert_eq!((error.code, &error.message), (*code as i32, text));
    }
    let ShouldAllowRequest { resource, consumer, strategy, .. } = ask();
    let used = [("tokens".to_owned(), 3)].into_iter().collect();
    let debit = DebitRequest { resource, consumer, strategy, costs: used, ..DebitRequest::default() };
    is_refused(&client.debit(debit.clone()).await.unwrap_err(), Code::InvalidArgument, NO_COSTS);
    let DebitRequest { resource, consumer, strategy, costs, .. } = debit;
    let settle = SettleRequest { resource, consumer, strategy, costs, ..SettleRequest::default() };
    for (id, costs, code, text) in [
        ("", true, Code::InvalidArgument, "id is \"\": it must be 1 to 128 bytes"),
        ("x", true, Code::InvalidArgument, NO_COSTS),
        ("x", false, Code::FailedPrecondition, NO_HOLDS),
    ] {
        let costs = if costs { settle.costs.clone() } else { Default::default() };
        let request = SettleRequest { id: id.to_owned(), costs, ..settle.clone() };
        is_refused(&client.settle(request).await.unwrap_err(), code, text);
    }
    let left = client.should_allow(ShouldAllowRequest { peek: true, ..ask() }).await.unwrap().into_inner();
    assert_eq!((left.remaining, left.held_for), (left.limit, None), "nothing was charged");
}

fn is_refused(status: &Status, code: Code, text: &str) {
    assert_eq!((status.code(), status.message()), (code, text));
}
