//! Limits change while calls hold units of them: by live control, by overrides and by files.

use tonic::Code;
use weir_proto::v1::{Cost, LimitStatus, SettleOutcome, SettleRequest, SettleResponse, ShouldAllowRequest};

use super::*;

const LIMIT: &str = "fixed_window: { limit: 1_000, window: 1w, anchored: true }";

fn file(hold: &str, limit: &str) -> String {
    format!(
        "
server: {{ control: true, admin_service: true }}
control: {{ cache_file: entries }}
strategies:
  llm:
{hold}
    limits: [{{ name: output, per: [consumer], cost: output, near_limit: 80%, {limit} }}]
resources: [{{ match: chat, strategy: llm }}]
"
    )
}

fn node() -> Node {
    let folder = scratch::dir("control-holds-");
    fs::write(folder.path().join("weir.yaml"), file("    hold: { max: 10m }", LIMIT)).unwrap();
    Node::on(folder)
}

impl Node {
    async fn ask_output(&self, (consumer, id): (&str, &str), cost: u64) -> (bool, LimitStatus) {
        let request = ShouldAllowRequest {
            resource: "chat".to_owned(),
            consumer: consumer.to_owned(),
            id: id.to_owned(),
            peek: id.is_empty(),
            costs: [("output".to_owned(), Cost { cost, at_least: None })].into(),
            hold_for: (!id.is_empty()).then_some(prost_types::Duration { seconds: 300, nanos: 0 }),
            ..ShouldAllowRequest::default()
        };
        let answer = self.server.client().await.should_allow(request).await.unwrap().into_inner();
        (answer.allowed, answer.limits[0].clone())
    }

    async fn settle_output(&self, id: &str, used: u64) -> Result<SettleResponse, Status> {
        let request = SettleRequest {
            resource: "chat".to_owned(),
            consumer: "bob".to_owned(),
            id: id.to_owned(),
            costs: [("output".to_owned(), used)].into(),
            ..SettleRequest::default()
        };
        Ok(self.server.client().await.settle(request).await?.into_inner())
    }

    /// Waits until a peek says this limit.
    async fn has_limit(&self, limit: u64) -> LimitStatus {
        let mut last = LimitStatus::default();
        eventually_async(SOON, "the file is read", async || {
            last = self.ask_output(("bob", ""), 1).await.1;
            last.limit == limit
        })
        .await;
        last
    }
}

fn numbers_of(limit: &str) -> HashMap<String, String> {
    numbers(&[("output", limit)])
}

#[tokio::test]
async fn a_changed_limit_applies_to_what_is_used_and_held_at_once() {
    let node = node();
    let (allowed, first) = node.ask_output(("bob", "a"), 600).await;
    assert!(allowed && !first.near_limit, "{first:?}");
    let lower =
        ControlStrategy { strategy: "llm".to_owned(), limits: numbers_of("{ limit: 500 }"), state: 0 };
    node.put_strategy(lower.clone(), why("less")).await.unwrap();
    let (allowed, now) = node.ask_output(("bob", ""), 1).await;
    assert_eq!((allowed, now.limit, now.remaining, now.held), (false, 500, 0, 600));
    assert!(now.near_limit, "600 of 500");
    let settled = node.settle_output("a", 400).await.unwrap();
    assert_eq!((settled.outcome(), settled.limits[0].charged), (SettleOutcome::Settled, 400));
    let (allowed, held) = node.ask_output(("bob", "b"), 100).await;
    assert_eq!((allowed, held.remaining, held.held), (true, 0, 100), "400 and 100 are the limit");
    let (allowed, other) = node.ask_output(("eve", "x"), 501).await;
    assert_eq!((allowed, other.limit), (false, 500));
    let entry = delete_entry_request::Entry::Strategy(lower);
    node.delete(entry, why("")).await.unwrap();
    let back = node.ask_output(("bob", ""), 1).await.1;
    assert_eq!((back.limit, back.remaining, back.held), (1_000, 500, 100));
}

#[tokio::test]
async fn near_limit_is_a_number_of_overrides_and_of_live_control() {
    let node = node();
    node.ask_output(("bob", "a"), 300).await;
    let near = async |consumer: &str| node.ask_output((consumer, ""), 1).await.1.near_limit;
    assert!(!near("bob").await, "300 of 1,000 are no 80 %");
    let mut one = ControlOverride {
        consumer: "bob".to_owned(),
        resource: "chat".to_owned(),
        strategy: String::new(),
        limits: numbers_of("{ near_limit: 30% }"),
    };
    node.put_override(one.clone(), why("")).await.unwrap();
    assert!(near("bob").await && !near("eve").await);
    // The use crosses the mark where it is now, once.
    let settled = node.settle_output("a", 300).await.unwrap();
    assert!(settled.limits[0].crossed_near_limit, "{settled:?}");
    let count = "weir_near_limit_total{strategy=\"llm\",limit=\"output\"} 1\n";
    assert!(node.server.get("/metrics").1.contains(count));
    one.limits = numbers_of("{ near_limit: 0% }");
    let refused = node.put_override(one, why("")).await.unwrap_err();
    assert!(refused.message().contains("write 1% to 100%"), "{refused}");
    let all = numbers_of("{ near_limit: 1% }");
    let of_all = ControlStrategy { strategy: "llm".to_owned(), limits: all, state: 0 };
    node.put_strategy(of_all, why("")).await.unwrap();
    node.ask_output(("eve", "x"), 10).await;
    assert!(near("eve").await);
    // The files' override of it has its own.
    let overridden = format!(
        "{}overrides: [{{ consumer: zoe, strategy: llm, limits: {{ output: {{ near_limit: 2% }} }} }}]\n",
        file("    hold: { max: 10m }", LIMIT)
    );
    node.write(&overridden);
    node.ask_output(("zoe", "y"), 10).await;
    eventually_async(SOON, "2 % of 1,000 are 20", async || !near("zoe").await).await;
}

#[tokio::test]
async fn a_part_keeps_its_end_and_an_old_key_is_left_to_itself() {
    let node = node();
    node.ask_output(("bob", "a"), 600).await;
    // Another longest hold, and another window.
    let other = "fixed_window: { limit: 700, window: 2w, anchored: true }";
    node.write(&file("    hold: { max: 20m }", other));
    let now = node.has_limit(700).await;
    assert_eq!((now.remaining, now.held), (100, 600));
    let settled = node.settle_output("a", 100).await.unwrap();
    assert_eq!((settled.outcome(), settled.limits[0].charged), (SettleOutcome::Settled, 100));
    assert_eq!(node.ask_output(("bob", ""), 1).await.1.remaining, 600);
    // Another algorithm has another key, so its settlement is charged in full there.
    node.ask_output(("bob", "b"), 50).await;
    node.write(&file("    hold: { max: 20m }", "token_bucket: { rate: 800/1w, burst: 800 }"));
    let now = node.has_limit(800).await;
    assert_eq!((now.remaining, now.held), (800, 0));
    let settled = node.settle_output("b", 40).await.unwrap();
    assert_eq!((settled.outcome(), settled.limits[0].charged), (SettleOutcome::Settled, 40));
    assert_eq!(node.ask_output(("bob", ""), 1).await.1.remaining, 760);
    // Without `hold` nothing is settled any more.
    node.write(&file("", "token_bucket: { rate: 900/1w, burst: 900 }"));
    node.has_limit(900).await;
    let refused = node.settle_output("c", 1).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("`llm` has no `hold`"), "{refused}");
}

#[tokio::test]
async fn what_is_used_stays_when_a_strategy_gets_or_loses_holds() {
    let node = node();
    node.ask_output(("bob", "a"), 300).await;
    node.settle_output("a", 250).await.unwrap();
    let limit = |limit: u64| format!("fixed_window: {{ limit: {limit}, window: 1w, anchored: true }}");
    for (hold, most) in [("", 900), ("    hold: { max: 10m }", 800), ("", 700)] {
        node.write(&file(hold, &limit(most)));
        let now = node.has_limit(most).await;
        assert_eq!(now.remaining, most - 250, "{hold}");
    }
}
