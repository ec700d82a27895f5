//! Rights to Envoy's method.

use super::super::{RATE_LIMIT, TRANSPORTS, unary};
use super::Guarded;
use super::lists::code;
use super::rights::{DENIED, envoys};

#[tokio::test]
async fn hits_are_given_back_with_two_rights() {
    let rules = "authorize:
  - { callers: [token:envoy], may: [envoy], envoy_domains: [basic] }
  - { callers: [token:both], may: [envoy, refund], envoy_domains: ['bas*'] }
  - { callers: [token:apart], may: [envoy], envoy_domains: [basic] }
  - { callers: [token:apart], may: [refund], resources: [basic] }
";
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["envoy", "both", "apart"], "", rules);
        let mut client = guarded.client().await;
        for (holder, hits, expected) in [
            ("envoy", 1, 0),
            ("envoy", -1, DENIED),
            ("both", 1, 0),
            ("both", -1, 0),
            // One rule must have both: `envoy_domains` bounds them together.
            ("apart", 1, 0),
            ("apart", -1, DENIED),
        ] {
            let call = unary(RATE_LIMIT, &envoys("basic", hits));
            let found = code(&mut client, &guarded, holder, call).await;
            assert_eq!(found, expected, "{transport:?} {holder} {hits}");
        }
    }
}
