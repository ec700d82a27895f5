//! Limits in shadow mode: they say what they would deny, and deny nothing.

use weir_config::{Config, ConfigOverrides, StoreConfig};
use weir_proto::v1::{ShouldAllowRequest, ShouldAllowResponse};

use super::count;
use crate::support::server::{Server, ask_under};
use crate::support::{SOON, eventually};

const RULES: &str = "
strategies:
  api:
    limits:
      - { name: new, per: [resource, consumer], mode: shadow, sliding_window: { limit: 2, window: 1d } }
      - { name: each, per: [resource, consumer], fixed_window: { limit: 5, window: 1d } }
      - { name: paced, per: [resource, consumer], mode: shadow, leaky_queue: { rate: 1/1h, burst: 0 } }
overrides: [{ consumer: gold, strategy: api, limits: { new: { fixed_window: { limit: 1, window: 1d } } } }]
";

weir_testing::on_every_store!(holds_on);

async fn holds_on(store: StoreConfig) {
    let config = Config::parse(RULES, "test", &ConfigOverrides::default()).unwrap();
    let server = Server::ready(Config { store, ..config });
    let mut client = server.client().await;
    let folder = tempfile::tempdir().unwrap();
    let resource = folder.path().display().to_string();
    let mut allow = async |consumer: &str, cost: u64, peek: bool| -> ShouldAllowResponse {
        let ask = ShouldAllowRequest { cost: Some(cost), peek, ..ask_under("api", &resource, consumer) };
        client.should_allow(ask).await.unwrap().into_inner()
    };
    for left in [4, 3, 2] {
        let answer = allow("bob", 1, false).await;
        assert!(answer.allowed && answer.denied_by.is_empty() && answer.retry_after.is_none());
        // The numbers are those of the limit that is enforced.
        assert_eq!((answer.limit, answer.remaining), (Some(5), Some(left)));
        assert_eq!(answer.wait, None);
        let names: Vec<&str> = answer.limits.iter().map(|limit| limit.name.as_str()).collect();
        assert_eq!(names, ["new", "each", "paced"]);
        assert_eq!(answer.limits[0].allowed, left > 2, "{left}");
        // It is not charged for what it would deny.
        assert_eq!(answer.limits[0].remaining, [0, 0, 1][usize::try_from(left).unwrap() - 2]);
    }
    // A peek counts nothing. A cost above the shadow is allowed, and above the other denied by that alone.
    assert!(allow("bob", 1, true).await.allowed);
    let answer = allow("ann", 3, false).await;
    assert_eq!((answer.allowed, answer.limits[0].cause.as_str()), (true, "never"), "{answer:?}");
    let denied = allow("ann", 3, false).await;
    assert_eq!((denied.allowed, &denied.denied_by[..]), (false, &["each".to_owned()][..]));
    assert_eq!(denied.limit, Some(5));
    // An override gives other numbers, not another mode.
    assert!(allow("gold", 1, false).await.allowed);
    let second = allow("gold", 1, false).await;
    assert!(second.allowed && !second.limits[0].allowed);
    let counts = || ["allowed", "denied", "never"].map(|outcome| count(&server, "api", "limit:new", outcome));
    eventually(SOON, &format!("counts {:?}", counts()), || counts() == [3, 2, 2]);
}

#[test]
fn a_strategy_enforces_something() {
    let text = "strategies: { a: { limits: [{ name: b, per: [consumer], mode: shadow, uniform: { interval: 1s } }] } }";
    let errors = Config::parse(text, "test", &ConfigOverrides::default()).unwrap_err().to_string();
    assert!(
        errors.contains("strategies.a: every limit is in shadow mode, so nothing is enforced"),
        "{errors}"
    );
    let text = text.replace("mode: shadow", "mode: shadows");
    let errors = Config::parse(&text, "test", &ConfigOverrides::default()).unwrap_err().to_string();
    assert!(errors.contains("limits[0].mode: \"shadows\" is not one of enforce, shadow"), "{errors}");
}
