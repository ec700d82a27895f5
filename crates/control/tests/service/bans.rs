//! Bans: whom a limit denies often, all nodes deny for a time.

use prost_types::Duration;
use weir_proto::v1::{
    ConsumerBan, LiftBanRequest, ListBansRequest, ListBansResponse, ReserveRequest, ShouldAllowBatchRequest,
    should_allow_result,
};
use weir_testing::RedisServer;

use super::*;

/// One call passes in an hour, and the third denial within a minute bans for ten minutes.
const BANNING: &str = "
server: { control: true, audit_file: audit.jsonl }
control: { cache_file: entries }
strategies:
  s:
    limits:
      - { name: each, per: [consumer], token_bucket: { rate: 1/h, burst: 1 }, ban: { after: 3, within: 1m, for: 10m } }
      - { name: all, per: [], token_bucket: { rate: 100/s } }
    single_slot: true
  plain: { limits: [{ name: l, per: [consumer], token_bucket: { rate: 1/h, burst: 1 } }] }
  tenants:
    limits:
      - name: l
        per: [resource, consumer, tenant]
        token_bucket: { rate: 1/h, burst: 1 }
        ban: { after: 1, within: 1m, for: 10m }
resources: [{ match: x, strategy: s }, { match: p, strategy: plain }, { match: 't/*', strategy: tenants }]
";

const MINUTE: u64 = 60_000_000;

fn node_with(text: &str) -> Node {
    let folder = scratch::dir("bans-");
    fs::write(folder.path().join("weir.yaml"), text).unwrap();
    Node::on(folder)
}

/// Nodes on one Redis, whose time stands still.
fn nodes_on(redis: &RedisServer) -> [Node; 2] {
    let text = format!("{BANNING}store: {{ redis: {{ nodes: ['{}'] }} }}\n", redis.url());
    [node_with(&text), node_with(&text)]
}

impl Node {
    async fn bans(&self, asked: ListBansRequest) -> ListBansResponse {
        self.control().await.list_bans(asked).await.unwrap().into_inner()
    }

    async fn banned(&self) -> Vec<ConsumerBan> {
        self.bans(ListBansRequest::default()).await.bans
    }

    async fn lift(&self, ban: ConsumerBan, dry_run: bool) -> Result<ConsumerBan, Status> {
        let request = LiftBanRequest { ban: Some(ban), reason: "it was us".to_owned(), dry_run };
        Ok(self.control().await.lift_ban(request).await?.into_inner().ban.unwrap())
    }

    /// Uses the limit up, and is denied so often.
    async fn is_denied(&self, consumer: &str, times: usize) {
        for _ in 0..times {
            assert_eq!(self.asks(consumer, 1).await.reason(), Reason::Limited);
        }
    }

    async fn bans_soon(&self, consumer: &str) {
        let is_banned = async || self.banned().await.iter().any(|ban| ban.consumer == consumer);
        eventually_async(SOON, "the consumer is banned", is_banned).await;
    }

    async fn bans_nobody_soon(&self) {
        eventually_async(SOON, "nobody is banned", async || self.banned().await.is_empty()).await;
    }

    fn step(&self, micros: u64) {
        self.server.clock.step(Micros(self.server.clock.now().0 + micros));
    }

    fn counted(&self, line: &str) -> u64 {
        let page = self.server.get("/metrics").1;
        let found = page.lines().find_map(|one| one.strip_prefix(line)).map(str::trim);
        found.unwrap_or_else(|| panic!("no {line} in\n{page}")).parse().unwrap()
    }
}

fn seconds(span: Option<Duration>) -> f64 {
    let span = span.unwrap();
    span.seconds as f64 + f64::from(span.nanos) / 1e9
}

#[tokio::test]
async fn who_is_denied_often_is_banned_until_the_ban_ends_and_is_charged_nothing() {
    let node = node_with(BANNING);
    assert!(node.asks("bob", 1).await.allowed);
    node.is_denied("bob", 2).await;
    // A peek and a cost of 0 are no calls, and what another strategy denies is not counted here.
    for _ in 0..5 {
        let peek = ShouldAllowRequest { peek: true, ..ask("x", "bob") };
        assert!(!node.server.client().await.should_allow(peek).await.unwrap().into_inner().allowed);
        node.asks("bob", 0).await;
        node.server.client().await.should_allow(ask("p", "bob")).await.unwrap();
    }
    assert_eq!(node.counted("weir_ban_counted_callers"), 1);
    assert_eq!(node.banned().await, []);
    node.is_denied("bob", 1).await;
    node.bans_soon("bob").await;
    node.step(4 * MINUTE + 1);
    let denied = node.asks("bob", 1).await;
    assert_eq!((denied.reason(), &*denied.denied_by), (Reason::Banned, &["each".to_owned()][..]));
    assert!(!denied.allowed && denied.limits.is_empty() && denied.limit.is_none());
    assert_eq!(denied.retry_after, Some(Duration { seconds: 359, nanos: 999_999_000 }), "to the microsecond");
    assert_eq!(denied.message, "This consumer is banned. Try again in 6m");
    assert_eq!(denied.denial_valid_for, Some(Duration { seconds: 1, nanos: 0 }));
    assert_eq!(node.asks("bob", 0).await.reason(), Reason::Banned);
    assert!(node.asks("eve", 1).await.allowed);
    // Denials by the ban do not make it longer.
    for _ in 0..10 {
        assert_eq!(node.asks("bob", 1).await.retry_after, denied.retry_after);
    }
    assert_eq!(node.counted("weir_bans_made_total"), 1);
    assert_eq!(node.counted("weir_bans "), 1);
    assert!(node.counted(r#"weir_decisions_total{strategy="s",outcome="banned"}"#) >= 12);
    node.step(6 * MINUTE - 2);
    let last = node.asks("bob", 1).await;
    assert_eq!(
        (last.reason(), last.retry_after),
        (Reason::Banned, Some(Duration { seconds: 0, nanos: 1_000 }))
    );
    node.step(1);
    let after = node.asks("bob", 1).await;
    assert_eq!(after.reason(), Reason::Limited, "the limit decides again");
    // An hour after his only charge the bucket is full: the ban has charged nothing.
    assert_eq!(seconds(after.retry_after), 50.0 * 60.0);
    node.bans_nobody_soon().await;
    crate::support::eventually(SOON, "the gauge follows", || node.counted("weir_bans ") == 0);
}

#[tokio::test]
async fn each_method_that_decides_denies_whom_a_ban_is_about() {
    let node = node_with(BANNING);
    node.asks("bob", 1).await;
    node.is_denied("bob", 3).await;
    node.bans_soon("bob").await;
    let mut client = node.server.client().await;
    let requests = vec![
        ask("x", "eve"),
        ShouldAllowRequest { id: "1".to_owned(), ..ask("x", "bob") },
        ShouldAllowRequest { at_most: true, headers: true, ..ask("x", "bob") },
        ask("x", "zoe"),
    ];
    let batch = client.should_allow_batch(ShouldAllowBatchRequest { requests }).await.unwrap().into_inner();
    let answers: Vec<ShouldAllowResponse> = batch
        .results
        .into_iter()
        .map(|result| match result.result {
            Some(should_allow_result::Result::Response(answer)) => answer,
            other => panic!("{other:?}"),
        })
        .collect();
    let reasons: Vec<Reason> = answers.iter().map(ShouldAllowResponse::reason).collect();
    assert_eq!(reasons, [Reason::Ok, Reason::Banned, Reason::Banned, Reason::Ok], "in their order");
    assert_eq!((answers[1].granted, answers[1].applied), (Some(0), Some(false)));
    assert_eq!(answers[2].headers.get("Retry-After").map(String::as_str), Some("600"));
    assert_eq!(answers[3].headers.len(), 0);
    let reserve = ReserveRequest {
        resource: "t/1".to_owned(),
        consumer: "bob".to_owned(),
        id: "r".to_owned(),
        attributes: HashMap::from([("tenant".to_owned(), "acme".to_owned())]),
        ..ReserveRequest::default()
    };
    let reserved = client.reserve(reserve.clone()).await.unwrap().into_inner();
    assert!(reserved.applied);
    let denied = client.reserve(ReserveRequest { id: "q".to_owned(), ..reserve.clone() }).await.unwrap();
    assert_eq!(denied.into_inner().decision.unwrap().reason(), Reason::Limited);
    eventually_async(SOON, "a reservation that is denied counts", async || node.banned().await.len() == 2)
        .await;
    let denied = client.reserve(ReserveRequest { id: "q".to_owned(), ..reserve }).await.unwrap().into_inner();
    let decision = denied.decision.unwrap();
    assert_eq!((decision.reason(), denied.applied), (Reason::Banned, false));
    assert_eq!(decision.retry_after, Some(Duration { seconds: 600, nanos: 0 }));
}

#[tokio::test]
async fn a_ban_is_about_what_its_limit_counts_by() {
    let node = node_with(BANNING);
    let mut client = node.server.client().await;
    let mut asks = async |resource: &str, tenant: &str| {
        let attributes = HashMap::from([("tenant".to_owned(), tenant.to_owned())]);
        let request = ShouldAllowRequest { attributes, ..ask(resource, "bob:1") };
        client.should_allow(request).await.unwrap().into_inner().reason()
    };
    assert_eq!(asks("t/1", "acme").await, Reason::Ok);
    assert_eq!(asks("t/1", "acme").await, Reason::Limited);
    node.bans_soon("bob:1").await;
    assert_eq!(asks("t/1", "acme").await, Reason::Banned);
    assert_eq!(asks("t/1", "other").await, Reason::Ok, "another tenant has a counter of its own");
    assert_eq!(asks("t/2", "acme").await, Reason::Ok);
    let [ban] = &node.banned().await[..] else { panic!("one ban") };
    assert_eq!((&*ban.strategy, &*ban.limit, &*ban.resource), ("tenants", "l", "t/1"));
    assert_eq!(ban.attributes, HashMap::from([("tenant".to_owned(), "acme".to_owned())]));
}

#[tokio::test]
async fn a_ban_is_lifted_once_and_the_audit_says_who_did_it() {
    let node = node_with(BANNING);
    node.asks("bob", 1).await;
    node.is_denied("bob", 3).await;
    node.bans_soon("bob").await;
    let [ban] = &node.banned().await[..] else { panic!("one ban") };
    let ends_at = (BASE.0 + 10 * MINUTE) / 1_000_000;
    assert_eq!(ban.ends_at.unwrap().seconds, i64::try_from(ends_at).unwrap());
    assert_eq!(node.lift(ban.clone(), true).await.unwrap(), *ban);
    assert_eq!(node.asks("bob", 1).await.reason(), Reason::Banned, "a dry run lifts nothing");
    assert_eq!(node.lift(ban.clone(), false).await.unwrap(), *ban);
    node.is_denied("bob", 2).await;
    assert_eq!(node.banned().await, [], "its denials are counted from 0 again");
    assert_eq!(node.lift(ban.clone(), false).await.unwrap_err().code(), Code::NotFound);
    for wrong in [
        ConsumerBan { limit: "all".to_owned(), ..ban.clone() },
        ConsumerBan { resource: "x".to_owned(), ..ban.clone() },
        ConsumerBan { strategy: "none".to_owned(), ..ban.clone() },
        ConsumerBan::default(),
    ] {
        assert_eq!(node.lift(wrong.clone(), false).await.unwrap_err().code(), Code::NotFound, "{wrong:?}");
    }
    let audit = node.audit();
    assert_eq!(audit.len(), 2, "{audit:?}");
    assert_eq!((&audit[0]["method"], &audit[0]["reason"]), (&"LiftBan".into(), &"it was us".into()));
    assert_eq!((&audit[0]["ban"]["consumer"], &audit[1]["result"]), (&"bob".into(), &"applied".into()));
    assert_eq!(node.counted("weir_bans_lifted_total"), 1);
    let mut node = node;
    node.server.stop();
    node.server.ended().unwrap();
    let totals = node.audit().pop().unwrap();
    assert_eq!(
        (&totals["audit"], &totals["banned"]["s/each"]),
        (&"bans".into(), &1.into()),
        "the last totals"
    );
    assert_eq!(totals["lifted"], 1);
}

#[tokio::test]
async fn a_list_has_pages_and_filters_within_bounds() {
    let node = node_with(BANNING);
    for consumer in ["a", "b", "c"] {
        node.asks(consumer, 1).await;
        node.is_denied(consumer, 3).await;
        node.bans_soon(consumer).await;
    }
    let page = |page_token: &str| ListBansRequest {
        page_size: Some(2),
        page_token: page_token.to_owned(),
        ..ListBansRequest::default()
    };
    let names =
        |page: &ListBansResponse| page.bans.iter().map(|ban| ban.consumer.clone()).collect::<Vec<_>>();
    let first = node.bans(page("")).await;
    assert_eq!((names(&first), first.total), (vec!["a".to_owned(), "b".to_owned()], 3));
    let second = node.bans(page(&first.next_page_token)).await;
    assert_eq!((names(&second), &*second.next_page_token), (vec!["c".to_owned()], ""));
    let of = |strategy: &str, consumer: &str| ListBansRequest {
        strategy: strategy.to_owned(),
        consumer: consumer.to_owned(),
        ..ListBansRequest::default()
    };
    assert_eq!(names(&node.bans(of("s", "b")).await), ["b"]);
    assert_eq!(names(&node.bans(of("plain", "")).await), [""; 0]);
    for (wrong, field) in [
        (ListBansRequest { page_size: Some(0), ..page("") }, "page_size"),
        (ListBansRequest { page_size: Some(1_001), ..page("") }, "page_size"),
        (page(&"x".repeat(2_049)), "page_token"),
    ] {
        let refused = node.control().await.list_bans(wrong).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(field), "{refused}");
    }
}

#[tokio::test]
async fn all_nodes_of_a_redis_ban_and_lift_and_cached_denials_count() {
    let redis = RedisServer::start();
    let [one, other] = nodes_on(&redis);
    assert!(one.asks("bob", 1).await.allowed);
    // The second and the third are answered by the cache of denials: no limit changes while time stands still.
    one.is_denied("bob", 3).await;
    one.bans_soon("bob").await;
    other.bans_soon("bob").await;
    for node in [&one, &other] {
        let denied = node.asks("bob", 1).await;
        assert_eq!(denied.reason(), Reason::Banned);
        assert_eq!(denied.retry_after, Some(Duration { seconds: 600, nanos: 0 }));
    }
    let [ban] = &other.banned().await[..] else { panic!("one ban") };
    other.lift(ban.clone(), false).await.unwrap();
    assert_eq!(other.asks("bob", 1).await.reason(), Reason::Limited, "at once where it was lifted");
    one.bans_nobody_soon().await;
    assert_eq!(one.asks("bob", 1).await.reason(), Reason::Limited);
    // Counts are per node: two there and two here ban nobody.
    for node in [&one, &other] {
        assert_eq!(node.asks("bob", 1).await.reason(), Reason::Limited);
        assert_eq!(node.banned().await, []);
    }
    other.is_denied("bob", 1).await;
    one.bans_soon("bob").await;
    for node in [&one, &other] {
        node.step(10 * MINUTE);
        assert_eq!(node.asks("bob", 1).await.reason(), Reason::Limited, "the ban has ended");
        node.bans_nobody_soon().await;
    }
}

#[tokio::test]
async fn a_reload_adds_bans_and_takes_them_away_and_live_numbers_keep_them() {
    let without = BANNING.replace(", ban: { after: 3, within: 1m, for: 10m }", "");
    let node = node_with(&without);
    node.asks("bob", 1).await;
    node.is_denied("bob", 5).await;
    assert_eq!(node.banned().await, []);
    node.write(BANNING);
    node.control().await.reload(weir_proto::v1::ReloadRequest {}).await.unwrap();
    node.put_strategy(of_strategy("s", "each", "{ burst: 1, rate: 2/h }"), why("")).await.unwrap();
    node.is_denied("bob", 3).await;
    node.bans_soon("bob").await;
    assert_eq!(node.asks("bob", 1).await.reason(), Reason::Banned);
    node.write(&without);
    node.control().await.reload(weir_proto::v1::ReloadRequest {}).await.unwrap();
    assert_eq!(node.asks("bob", 1).await.reason(), Reason::Limited, "without `ban` a ban means nothing");
}

#[tokio::test]
async fn the_admin_port_shows_entries_and_bans() {
    let redis = RedisServer::start();
    let [one, other] = nodes_on(&redis);
    let eve = ControlOverride { limits: numbers(&[("each", "5/h")]), ..of_consumer("eve", "") };
    one.put_override(eve, why("they asked")).await.unwrap();
    one.asks("bob", 1).await;
    one.is_denied("bob", 3).await;
    other.bans_soon("bob").await;
    let shown = || serde_json::from_str::<serde_json::Value>(&other.server.get("/ui/control").1).unwrap();
    eventually_async(SOON, "the other node has the entry", async || shown()["total"] == 1).await;
    let shown = shown();
    assert_eq!((&shown["entries"][0]["override"]["consumer"], &shown["total"]), (&"eve".into(), &1.into()));
    assert_eq!(shown["entries"][0]["reason"], "they asked");
    assert_eq!((&shown["bans"][0]["consumer"], &shown["total_bans"]), (&"bob".into(), &1.into()));
}
