//! Rights that need one another, and rights that bound what answers show.

use weir_proto::v1;
use weir_proto::v1::inline_limit::Algorithm;

use super::super::client::{Call, Client};
use super::super::{SHOULD_ALLOW, TRANSPORTS, unary};
use super::Guarded;
use super::rights::DENIED;
use crate::support::server::{ask, ask_under};

/// A question that brings its limit along.
fn inline(resource: &str) -> v1::ShouldAllowRequest {
    let bucket = v1::InlineTokenBucket {
        rate: 1,
        period: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        burst: Some(5),
    };
    let algorithm = Some(Algorithm::TokenBucket(bucket));
    let inline = v1::InlineLimit { name: "mine".to_owned(), algorithm, ..v1::InlineLimit::default() };
    v1::ShouldAllowRequest { inline: Some(inline), ..ask(resource, "bob") }
}

pub(super) async fn code(client: &mut Client, guarded: &Guarded, holder: &str, call: Call) -> u16 {
    let outcome = client.call(&call.with("authorization", &guarded.bearer(holder))).await;
    outcome.code.unwrap_or_else(|| panic!("{holder}: {outcome:?}"))
}

/// Numbers in a request need `decide` and `inline`, and for lists of strategies they are named `inline`.
#[tokio::test]
async fn limits_in_requests_need_two_rights() {
    let rules = "authorize:
  - { callers: [token:both], may: [decide, inline], resources: [burst/*] }
  - { callers: [token:decide], may: [decide] }
  - { callers: [token:inline], may: [inline] }
  - { callers: [token:named], may: [decide], strategies: [inline] }
  - { callers: [token:named], may: [inline] }
  - { callers: [token:other], may: [decide], strategies: [burst] }
  - { callers: [token:other], may: [inline] }
";
    for transport in TRANSPORTS {
        let holders = ["both", "decide", "inline", "named", "other"];
        let guarded = Guarded::start(transport, &holders, "", rules);
        let mut client = guarded.client().await;
        for (holder, resource, expected) in [
            ("both", "burst/x", 0),
            ("both", "other/x", DENIED),
            ("decide", "burst/x", DENIED),
            ("inline", "burst/x", DENIED),
            ("named", "burst/x", 0),
            ("other", "burst/x", DENIED),
        ] {
            let call = unary(SHOULD_ALLOW, &inline(resource));
            let found = code(&mut client, &guarded, holder, call).await;
            assert_eq!(found, expected, "{transport:?} {holder} {resource}");
        }
        // The strategies of the file go by their own names.
        for (holder, expected) in [("named", DENIED), ("other", 0)] {
            let call = unary(SHOULD_ALLOW, &ask("burst/x", "bob"));
            assert_eq!(code(&mut client, &guarded, holder, call).await, expected, "{transport:?} {holder}");
        }
    }
}

/// A consumer on a deny list is denied to those who may ask about it. Others do not learn that it is on one.
#[tokio::test]
async fn lists_of_consumers_are_looked_up_after_the_rights() {
    let rules = "authorize:
  - { callers: [token:admin], may: [decide, inspect] }
  - { callers: [token:shop], may: [decide], consumers: [bob] }
access: { deny: [mallory] }
";
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin", "shop"], "", rules);
        let mut client = guarded.client().await;
        let before = guarded.counted();
        for consumer in ["mallory", "nobody"] {
            let call = unary(SHOULD_ALLOW, &ask_under("burst", "burst/x", consumer));
            assert_eq!(code(&mut client, &guarded, "shop", call).await, DENIED, "{transport:?} {consumer}");
        }
        assert_eq!(guarded.counted(), before, "{transport:?}");
        let call = unary(SHOULD_ALLOW, &ask_under("burst", "burst/x", "mallory"));
        assert_eq!(code(&mut client, &guarded, "admin", call).await, 0, "{transport:?}");
        assert_ne!(guarded.counted(), before, "{transport:?}");
        // Callers are never labels.
        let page = guarded.server.get_as("/metrics", &guarded.bearer("admin")).1;
        assert!(page.contains("weir_refused_calls_total") && !page.contains("token:"), "{transport:?}");
    }
}
