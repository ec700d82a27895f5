//! Lines of costs by name: what was asked, held, used and given back.

use serde_json::{Value, json};
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::{Cost, DebitRequest, RefundRequest, ResetRequest, SettleRequest, ShouldAllowRequest};

use super::{config_of, lines_of};
use crate::support::requests::About as _;
use crate::support::server::{Server, ask_under};

/// A hold, its settlement and others, a debit, a refund, a reset and a denied call.
async fn make_calls(server: &Server) {
    let mut client = server.client().await;
    let named = |units: u64| [("output".to_owned(), units)].into();
    let (resource, consumer, strategy) = ("chat".to_owned(), "bob".to_owned(), "held".to_owned());
    let held = ShouldAllowRequest {
        id: "one".to_owned(),
        costs: [("output".to_owned(), Cost { cost: 80, at_least: Some(7) })].into(),
        hold_for: Some(prost_types::Duration { seconds: 120, nanos: 5_000 }),
        ..ask_under("held", "chat", "bob")
    };
    client.should_allow(held.clone()).await.unwrap();
    let settle = SettleRequest {
        id: "one".to_owned(),
        costs: named(60),
        ..SettleRequest::about(&strategy, &resource, &consumer)
    };
    client.settle(settle.clone()).await.unwrap();
    client.settle(settle.clone()).await.unwrap();
    let unknown = SettleRequest { id: "two".to_owned(), costs: named(0), ..settle.clone() };
    client.settle(unknown).await.unwrap();
    client.settle(SettleRequest { costs: named(61), ..settle }).await.unwrap_err();
    let debit = DebitRequest { costs: named(9), ..DebitRequest::about(&strategy, &resource, &consumer) };
    client.debit(debit).await.unwrap();
    let limits = vec!["output".to_owned()];
    let refund = RefundRequest {
        cost: Some(4),
        limits: limits.clone(),
        ..RefundRequest::about(&strategy, &resource, &consumer)
    };
    client.refund(refund).await.unwrap();
    let mut admin = AdminServiceClient::new(server.channel().await);
    let reset = ResetRequest { resource, consumer, strategy, limits, ..ResetRequest::default() };
    admin.reset(reset).await.unwrap();
    let denied = ShouldAllowRequest { consumer: "mallory".to_owned(), ..held };
    client.should_allow(denied).await.unwrap();
}

#[tokio::test]
async fn what_was_used_and_given_back_of_costs_by_name_has_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::ready(config_of("{ decisions: { keys: 1, file: FOLDER/log } }", folder.path()));
    make_calls(&server).await;
    let lines = lines_of(&mut server, &folder.path().join("log"));
    let said = |line: &Value| {
        let limit = &line["limits"][0];
        let of_line =
            ["operation", "outcome", "costs", "settlement", "cost", "granted"].map(|name| &line[name]);
        let of_limit = ["cost", "charged", "held", "remaining"].map(|name| &limit[name]);
        json!([of_line, of_limit])
    };
    let expected = json!([
        [["charge", "allowed", { "output": 80 }, null, 1, 0], [80, null, 80, 20]],
        [["settle", "done", { "output": 60 }, "settled", 0, 0], [60, 60, 0, 40]],
        [["settle", "known", { "output": 60 }, "settled", 0, 0], [0, 60, 0, 40]],
        [["settle", "done", { "output": 0 }, "unknown", 0, 0], [0, 0, 0, 40]],
        [["settle", "error", { "output": 61 }, null, 0, 0], [null, null, null, null]],
        [["debit", "done", { "output": 9 }, null, 0, 0], [9, 9, 0, 31]],
        [["refund", "done", null, null, 4, 4], [0, null, 0, 35]],
        [["reset", "done", null, null, 0, 0], [0, null, 0, 100]],
        [["charge", "deny_list", { "output": 80 }, null, 1, 0], [null, null, null, null]],
    ]);
    assert_eq!(Value::from_iter(lines.iter().map(said)), expected);
    assert_eq!(
        (&lines[0]["at_least"]["output"], &lines[0]["hold_for_us"]),
        (&7.into(), &120_000_005_u64.into())
    );
    assert_eq!(lines[1]["id"], "one");
    assert!(lines[1].get("hold_for_us").is_none() && lines[1].get("at_least").is_none());
}
