//! Credentials that end while calls are open, and key sets that change.

use prost::Message as _;
use serde_json::json;
use weir_proto::v1;
use weir_testing::certificates::replace;
use weir_testing::jwt::JwtKeyPair;
use weir_testing::metrics;
use weir_testing::{SOON, eventually_async};
use weir_units::Micros;

use super::super::client::{Call, Ends};
use super::super::{SHOULD_ALLOW, STREAM, TRANSPORTS, unary};
use super::Guarded;
use crate::support::grpc::framed;
use crate::support::server::{BASE, ask};

const SUBSCRIBE: &str = "/weir.v1.QueueService/Subscribe";
/// The queue `work`, the consumer `bob`, and a credit of one.
const SUBSCRIBE_REQUEST: &[u8] = b"\x0a\x04work\x12\x03bob\x18\x01";

const ISSUER: &str = "https://idp.example";

/// Rules for this caller, beside those of the administrator.
fn rules(caller: &str) -> String {
    format!(
        "authorize:
  - {{ callers: [token:admin], may: [inspect] }}
  - {{ callers: ['{caller}'], may: [decide, take] }}
"
    )
}

/// Gives a holder's token an end, an hour after the tests' clock.
fn with_end(guarded: &Guarded, holder: &str) {
    let file = guarded.dir.path().join("tokens");
    let lines = std::fs::read_to_string(&file).unwrap();
    let ended = lines.lines().map(|line| match line.starts_with(holder) {
        true => format!("{line} 2024-01-01T01:00:00Z\n"),
        false => format!("{line}\n"),
    });
    replace(&file, ended.collect::<String>().as_bytes());
}

fn question(id: u64) -> Vec<u8> {
    let request = Some(ask("burst/x", "bob"));
    let message = v1::ShouldAllowStreamRequest { requests: vec![v1::StreamedRequest { id, request }] };
    framed(0, &message.encode_to_vec())
}

/// Without messages they end by themselves, and a message that comes after the end is not decided.
#[tokio::test]
async fn open_calls_end_with_their_token() {
    for transport in TRANSPORTS {
        let guarded = Guarded::start(transport, &["admin", "shop"], "", &rules("token:shop"));
        with_end(&guarded, "shop");
        let mut client = guarded.client().await;
        let shop = guarded.bearer("shop");
        let open = |path: &str, body: Vec<u8>| Call {
            ends: Ends::Never,
            ..Call::new(path, body).with("authorization", &shop)
        };
        let mut asked = client.begin(&open(STREAM, question(1))).await.unwrap();
        let silent = client.begin(&open(STREAM, vec![])).await.unwrap();
        let mut waiting = vec![("none", silent)];
        if cfg!(feature = "queues") {
            let subscribe = open(SUBSCRIBE, framed(0, SUBSCRIBE_REQUEST));
            waiting.push(("a subscription", client.begin(&subscribe).await.unwrap()));
        }
        let decided = || {
            let page = guarded.counted().join("\n");
            metrics::value::<u64>(&page, "weir_decisions_total{strategy=\"burst\",outcome=\"allowed\"}")
        };
        eventually_async(SOON, "the first message is decided", async || decided() == 1).await;
        // The file with the end may not be read yet.
        guarded.server.clock.set(Micros(BASE.0 + 3_600_000_000));
        let ended = unary(SHOULD_ALLOW, &ask("burst/x", "eve")).with("authorization", &shop);
        let is_over = async || client.call(&ended).await.code == Some(16);
        eventually_async(SOON, "the token has ended", is_over).await;
        let before = decided();
        asked.send(question(2));
        waiting.push(("a message", asked));
        for (what, call) in waiting {
            assert_eq!(call.outcome().await.code, Some(16), "{transport:?}: {what}");
        }
        assert_eq!(decided(), before, "{transport:?}");
    }
}

/// A key that has gone ends what it has proved, also in the caches; one that has come proves at once.
#[tokio::test]
async fn a_key_set_changes_while_it_serves() {
    let keys = [JwtKeyPair::ed25519("one"), JwtKeyPair::ed25519("two")];
    let dir = crate::support::scratch::dir("jwks");
    let file = dir.path().join("jwks.json");
    let serve = |keys: &[&JwtKeyPair]| {
        let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
        replace(&file, json!({ "keys": keys }).to_string().as_bytes());
    };
    let identity = format!(
        "jwt: [{{ jwks_file: {}, issuer: '{ISSUER}', audience: weir, algorithms: [EdDSA] }}]",
        file.display()
    );
    let claims = json!({ "iss": ISSUER, "aud": "weir", "sub": "shop", "exp": BASE.0 / 1_000_000 + 60 });
    for transport in TRANSPORTS {
        serve(&[&keys[0]]);
        let guarded = Guarded::start(transport, &["admin"], &identity, &rules(&format!("jwt:{ISSUER}:*")));
        let mut client = guarded.client().await;
        let [one, two] = keys.each_ref().map(|key| {
            let token = format!("Bearer {}", key.sign(key.header(), claims.clone()));
            unary(SHOULD_ALLOW, &ask("burst/x", "bob")).with("authorization", &token)
        });
        assert_eq!(client.call(&one).await.code, Some(0), "{transport:?}");
        assert_eq!(client.call(&two).await.code, Some(16), "{transport:?}");
        let authorization = one.headers[0].1.to_str().unwrap().to_owned();
        let stream = Call { ends: Ends::Never, ..Call::new(STREAM, vec![]) };
        let open = client.begin(&stream.with("authorization", &authorization)).await.unwrap();
        serve(&[&keys[0], &keys[1]]);
        let has_come = async || client.call(&two).await.code == Some(0);
        eventually_async(SOON, "the second key proves", has_come).await;
        assert_eq!(client.call(&one).await.code, Some(0), "{transport:?}: both do");
        serve(&[&keys[1]]);
        assert_eq!(open.outcome().await.code, Some(16), "{transport:?}: the open call ends");
        assert_eq!(client.call(&one).await.code, Some(16), "{transport:?}");
        assert_eq!(client.call(&two).await.code, Some(0), "{transport:?}");
    }
}
