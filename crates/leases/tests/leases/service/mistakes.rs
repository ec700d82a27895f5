//! Everything that a caller can get wrong about a lease.

use tonic::{Code, Status};
use weir_proto::v1::{AcquireRequest, ReleaseRequest, RenewRequest, ShouldAllowRequest};

use super::{Client, acquire, acquired, client, release, renew, seconds, server};
use crate::support::server::ask_under;
use crate::support::stores;

pub async fn refused(client: &mut Client, request: AcquireRequest) -> (Code, String) {
    code_and_message(client.acquire(request).await.expect_err("it must be refused"))
}

fn code_and_message(status: Status) -> (Code, String) {
    (status.code(), status.message().to_owned())
}

#[tokio::test]
async fn a_mistake_is_named_with_its_value_and_its_bound() {
    let server = server(stores::memory());
    let mut client = client(&server).await;
    let invalid = |message: &str| (Code::InvalidArgument, message.to_owned());
    let good = acquire("wide", "a");
    let ttl = |seconds, nanos| AcquireRequest {
        ttl: Some(prost_types::Duration { seconds, nanos }),
        ..good.clone()
    };
    let long = "x".repeat(129);
    let shown = "x".repeat(64);
    let bound = "it must be 1us to 3600s, which is the strategy's `max_ttl`";
    let cases = [
        (acquire("wide", ""), "id is \"\": it has 0 bytes; it must have 1 to 128".to_owned()),
        (acquire("wide", &long), format!("id is \"{shown}…\": it has 129 bytes; it must have 1 to 128")),
        (AcquireRequest { weight: Some(0), ..good.clone() }, "weight is 0: it must be 1 to 5".to_owned()),
        (AcquireRequest { weight: Some(6), ..good.clone() }, "weight is 6: it must be 1 to 5".to_owned()),
        (
            AcquireRequest { weight: Some(1 << 52), ..acquire("exports", "a") },
            "weight is 4503599627370496: it must be 1 to 4503599627370495".to_owned(),
        ),
        (ttl(0, 0), format!("ttl is 0s: {bound}")),
        (ttl(0, 999), format!("ttl is 0s: {bound}")),
        (ttl(3600, 1_000), format!("ttl is 3600000001us: {bound}")),
        (ttl(-1, 0), "ttl is -1 s and 0 ns: it must be a duration above 0".to_owned()),
        (
            AcquireRequest { resource: String::new(), ..good.clone() },
            "resource is \"\": it must be 1 to 512 bytes".to_owned(),
        ),
        (
            AcquireRequest { consumer: String::new(), ..good.clone() },
            "consumer is \"\": it must be 1 to 512 bytes, because a limit of strategy `wide` counts by consumer".to_owned(),
        ),
    ];
    for (request, message) in cases {
        assert_eq!(refused(&mut client, request).await, invalid(&message));
    }
    let bad = RenewRequest { ttl: seconds(3601), ..renew(&good) };
    assert_eq!(
        code_and_message(client.renew(bad).await.unwrap_err()),
        invalid(&format!("ttl is 3601s: {bound}"))
    );
    let bad = RenewRequest { id: String::new(), ..renew(&good) };
    assert_eq!(client.renew(bad).await.unwrap_err().code(), Code::InvalidArgument);
    let bad = ReleaseRequest { rtt: seconds(0), ..release(&good) };
    assert_eq!(
        code_and_message(client.release(bad).await.unwrap_err()),
        invalid("rtt is 0s: it must be 1us to 3155760000s")
    );
    let bad = ReleaseRequest { outcome: 4, ..release(&good) };
    assert_eq!(
        code_and_message(client.release(bad).await.unwrap_err()),
        invalid("outcome is 4: it must be 0 to 3: SUCCESS, IGNORED or DROPPED")
    );
    let (code, message) = refused(&mut client, acquire("wyde", "a")).await;
    assert_eq!(
        (code, message.contains("`wide`") || message.contains("wide")),
        (Code::NotFound, true),
        "{message}"
    );
    // Nothing was taken by any of them.
    assert_eq!(acquired(&mut client, &good).await.in_flight, Some(1));
    let other = refused(&mut client, AcquireRequest { weight: Some(2), ..good.clone() }).await;
    let message = "id is \"a\": a lease of this id is held with weight 1, not 2";
    assert_eq!(other, (Code::AlreadyExists, message.to_owned()));
}

/// Rate limits and permits are asked for by their own services.
#[tokio::test]
async fn a_strategy_of_the_other_kind_says_where_to_ask() {
    let server = server(stores::memory());
    let mut client = client(&server).await;
    let mut rates = server.client().await;
    let message = "strategy `rates` has rate limits and no permits; ask RateLimitService.ShouldAllow";
    assert_eq!(
        refused(&mut client, acquire("rates", "a")).await,
        (Code::FailedPrecondition, message.to_owned())
    );
    let of_rates = acquire("rates", "a");
    assert_eq!(client.renew(renew(&of_rates)).await.unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(client.release(release(&of_rates)).await.unwrap_err().code(), Code::FailedPrecondition);
    let message = "strategy `exports` has permits and no rate limits; ask ConcurrencyService.Acquire";
    let wrong = (Code::FailedPrecondition, message.to_owned());
    assert_eq!(
        code_and_message(rates.should_allow(ask_under("exports", "r", "bob")).await.unwrap_err()),
        wrong
    );
    let peek = ShouldAllowRequest { peek: true, ..ask_under("exports", "r", "bob") };
    assert_eq!(code_and_message(rates.should_allow(peek).await.unwrap_err()), wrong);
    let batch = weir_proto::v1::ShouldAllowBatchRequest { requests: vec![ask_under("exports", "r", "bob")] };
    let results = rates.should_allow_batch(batch).await.unwrap().into_inner().results;
    let Some(weir_proto::v1::should_allow_result::Result::Error(error)) = &results[0].result else {
        panic!("{results:?}")
    };
    assert_eq!((error.code, error.message.as_str()), (Code::FailedPrecondition as i32, message));
    let refund = weir_proto::v1::RefundRequest {
        resource: "r".to_owned(),
        consumer: "bob".to_owned(),
        strategy: "exports".to_owned(),
        ..Default::default()
    };
    assert_eq!(code_and_message(rates.refund(refund).await.unwrap_err()), wrong);
}
