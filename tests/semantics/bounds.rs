//! Everything a caller can get wrong: the answer names it, and the connection goes on.

use tonic::Code;
use tonic::transport::Channel;
use weir_proto::v1::ShouldAllowRequest;
use weir_proto::v1::rate_limit_service_client::RateLimitServiceClient;

use crate::support::server::{Server, ask, ask_under, config};

type Client = RateLimitServiceClient<Channel>;

async fn refused(client: &mut Client, request: ShouldAllowRequest) -> (Code, String) {
    let status = client.should_allow(request).await.expect_err("it must be refused");
    (status.code(), status.message().to_owned())
}

#[tokio::test]
async fn a_bad_field_is_named_with_its_value_and_its_bound() {
    let server = Server::start(config());
    let mut client = server.client().await;
    let long = "x".repeat(513);
    let shown = format!("\"{}…\"", "x".repeat(64));
    let too_long = |field: &str| format!("{field} is {shown}: it has 513 bytes; at most 512 fit");
    let attributes = |count: usize, value: &str| ShouldAllowRequest {
        attributes: (0..count).map(|index| (format!("a{index}"), value.to_owned())).collect(),
        ..ask("burst/x", "bob")
    };
    let in_region = |region: &str| ShouldAllowRequest {
        attributes: [("region".to_owned(), region.to_owned())].into(),
        ..ask_under("regional", "x", "bob")
    };
    let no_region = "attributes is without \"region\": it must be 1 to 512 bytes, because limit `region` of \
                     strategy `regional` counts by it";
    let cases = [
        (ask("", "bob"), "resource is \"\": it must be 1 to 512 bytes".to_owned()),
        (ask(&long, "bob"), too_long("resource")),
        (ask("burst/x", &long), too_long("consumer")),
        (ask_under(&long, "burst/x", "bob"), too_long("strategy")),
        (
            ask("burst/x", ""),
            "consumer is \"\": it must be 1 to 512 bytes, because a limit of strategy `burst` counts by \
             consumer"
                .to_owned(),
        ),
        (ask_under("regional", "x", "bob"), no_region.to_owned()),
        (in_region(""), no_region.to_owned()),
        (in_region(&long), too_long("attributes (value)")),
        (attributes(17, "v"), "attributes is 17 entries: there may be at most 16".to_owned()),
        (attributes(1, &long), too_long("attributes (value)")),
    ];
    for (request, message) in cases {
        assert_eq!(refused(&mut client, request).await, (Code::InvalidArgument, message));
    }
    assert!(client.should_allow(attributes(16, &"v".repeat(512))).await.unwrap().into_inner().allowed);
}

#[tokio::test]
async fn unknown_names_are_not_found_and_near_ones_are_offered() {
    let server = Server::start(config());
    let mut client = server.client().await;
    let (code, message) = refused(&mut client, ask_under("tiger-fedding", "x", "bob")).await;
    assert_eq!(code, Code::NotFound);
    assert_eq!(message, "strategy: there is no strategy `tiger-fedding` (similar: tiger-feeding)");
    let (code, message) = refused(&mut client, ask("nobody/knows", "bob")).await;
    assert_eq!(code, Code::NotFound);
    assert!(message.starts_with("resource: no pattern of the configuration matches `nobody/knows`"));
    let (_, message) = refused(&mut client, ask_under("b\n\0", "x", "bob")).await;
    assert!(message.starts_with("strategy: there is no strategy `b\\n\\0`"), "{message}");
    let (_, message) = refused(&mut client, ask_under(&"é".repeat(256), "x", "bob")).await;
    assert!(message.contains(&format!("`{}…`", "é".repeat(64))), "{message}");
}

#[tokio::test]
async fn strange_names_are_names_like_any_other() {
    let server = Server::start(config());
    let mut client = server.client().await;
    let names =
        ["{}", ":", "{user}:1", "a\0b", "line\nbreak", "\r\n", "🦀🦀🦀🦀", "%00", " ", "é", &"n".repeat(512)];
    for name in names {
        for other in names {
            let request = ShouldAllowRequest { cost: Some(5), ..ask_under("burst", name, other) };
            let answer = client.should_allow(request).await.unwrap().into_inner();
            assert!(answer.allowed, "{name:?} and {other:?} have a state of their own");
        }
    }
    let again = client.should_allow(ask_under("burst", "{}", ":")).await.unwrap().into_inner();
    assert!(!again.allowed);
}
