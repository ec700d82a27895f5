//! The answer to a set, and its time.
//!
//! A refusal names the version before, so a server sends the set again at once, for ever, and nothing newer before that is
//! refused, too. A set that was refused last is therefore neither read nor logged again. The second refusal names the
//! version that is refused: then a server has nothing to send until it has a newer set, which comes at once. To one that
//! sends the same set all the same, further refusals come after a while. Servers number their versions from 1 after each
//! start, so only the content of a set says if it is another one.

use std::time::Duration;

use crate::settings::XdsConfig;
use prost_types::Any;
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN, digest};
use weir_proto::envoy::config::core::v3::Node;
use weir_proto::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use weir_proto::google::rpc::Status;

use super::TYPE_URL;

/// `INVALID_ARGUMENT`
const INVALID: i32 = 3;

/// The longest text of a refusal, in bytes.
const MAX_TEXT: usize = 8 << 10;

type SetDigest = [u8; SHA256_OUTPUT_LEN];

/// The state of all streams, one after the other.
#[derive(Debug)]
pub(super) struct XdsExchange {
    node: Node,
    /// The version that was accepted last on the current stream.
    accepted: String,
    /// The set that was accepted last.
    applied: Option<SetDigest>,
    refused: Option<RefusedSet>,
    first_wait: Duration,
    longest_wait: Duration,
}

/// The set that was refused last.
#[derive(Debug)]
struct RefusedSet {
    digest: SetDigest,
    text: String,
    /// The time before it is refused again.
    wait: Duration,
}

/// The news in a set.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SetNews {
    /// Another one, which must be read.
    New(SetDigest),
    /// The one that was accepted last.
    Known,
    /// The one that was refused last. It is refused again after this time.
    RefusedBefore(Duration),
}

impl XdsExchange {
    /// Begins without a set. A set that is sent again is refused after `first_wait`, which doubles up to `longest_wait`.
    pub(super) fn new(config: &XdsConfig, first_wait: Duration, longest_wait: Duration) -> Self {
        let pairs = config.node_metadata.as_deref().and_then(|text| crate::settings::pairs(text, '='));
        let fields = pairs.into_iter().flatten().map(|(key, value)| {
            let kind = prost_types::value::Kind::StringValue(value.to_owned());
            (key.to_owned(), prost_types::Value { kind: Some(kind) })
        });
        let metadata = prost_types::Struct { fields: fields.collect() };
        let node = Node {
            id: config.node_id.clone(),
            metadata: (!metadata.fields.is_empty()).then_some(metadata),
            user_agent_name: "weir".to_owned(),
            user_agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Node::default()
        };
        Self { node, accepted: String::new(), applied: None, refused: None, first_wait, longest_wait }
    }

    /// The first request of a stream. It has no version: the same version of another server is another set.
    pub(super) fn first(&mut self) -> DiscoveryRequest {
        self.accepted.clear();
        self.request(String::new(), None)
    }

    /// The news in a set by its content, after this number of changes of the overlay.
    pub(super) fn news(&mut self, response: &DiscoveryResponse, overlays: u64) -> SetNews {
        let found = digest_of(&response.resources, overlays);
        let longest = self.longest_wait;
        match &mut self.refused {
            Some(refused) if refused.digest == found => {
                let wait = refused.wait;
                refused.wait = if wait.is_zero() { self.first_wait } else { (wait * 2).min(longest) };
                SetNews::RefusedBefore(wait)
            }
            None if self.applied == Some(found) => SetNews::Known,
            _ => SetNews::New(found),
        }
    }

    /// Accepts a set.
    pub(super) fn accept(
        &mut self,
        response: &DiscoveryResponse,
        digest: Option<SetDigest>,
    ) -> DiscoveryRequest {
        self.accepted.clone_from(&response.version_info);
        if digest.is_some() {
            self.applied = digest;
        }
        self.refused = None;
        self.request(response.nonce.clone(), None)
    }

    /// Refuses a set for the first time.
    pub(super) fn refuse(
        &mut self,
        response: &DiscoveryResponse,
        digest: SetDigest,
        mut text: String,
    ) -> DiscoveryRequest {
        let end = text.char_indices().map(|(end, _)| end).take_while(|end| *end <= MAX_TEXT).last();
        if text.len() > MAX_TEXT {
            text.truncate(end.unwrap_or_default());
        }
        let error = Status { code: INVALID, message: text.clone() };
        self.refused = Some(RefusedSet { digest, text, wait: Duration::ZERO });
        self.request(response.nonce.clone(), Some(error))
    }

    /// Refuses the set that was refused last, and asks for what follows it.
    pub(super) fn refuse_again(&self, response: &DiscoveryResponse) -> DiscoveryRequest {
        let text = self.refused.as_ref().map(|refused| refused.text.clone()).unwrap_or_default();
        let request = self.request(response.nonce.clone(), Some(Status { code: INVALID, message: text }));
        DiscoveryRequest { version_info: response.version_info.clone(), ..request }
    }

    /// True if the last set was refused.
    pub(super) const fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    fn request(&self, nonce: String, error_detail: Option<Status>) -> DiscoveryRequest {
        DiscoveryRequest {
            version_info: self.accepted.clone(),
            node: Some(self.node.clone()),
            type_url: TYPE_URL.to_owned(),
            response_nonce: nonce,
            error_detail,
            ..DiscoveryRequest::default()
        }
    }
}

/// The digest of a set, whose resources have no order, under an overlay.
fn digest_of(resources: &[Any], overlays: u64) -> SetDigest {
    let mut each: Vec<SetDigest> = resources
        .iter()
        .map(|resource| {
            let mut context = Context::new(&SHA256);
            context.update(digest(&SHA256, resource.type_url.as_bytes()).as_ref());
            context.update(&resource.value);
            array(context.finish().as_ref())
        })
        .collect();
    each.sort_unstable();
    let mut context = Context::new(&SHA256);
    context.update(&overlays.to_be_bytes());
    context.update(each.as_flattened());
    array(context.finish().as_ref())
}

fn array(digest: &[u8]) -> SetDigest {
    // A SHA-256 always has this length.
    digest.try_into().unwrap_or([0; SHA256_OUTPUT_LEN])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(version: &str, nonce: &str, values: &[u8]) -> DiscoveryResponse {
        let resource = |value: &u8| Any { type_url: TYPE_URL.to_owned(), value: vec![*value] };
        DiscoveryResponse {
            version_info: version.to_owned(),
            nonce: nonce.to_owned(),
            resources: values.iter().map(resource).collect(),
            type_url: TYPE_URL.to_owned(),
        }
    }

    fn exchange() -> XdsExchange {
        XdsExchange::new(&XdsConfig::default(), Duration::from_secs(1), Duration::from_secs(10))
    }

    fn new_digest(exchange: &mut XdsExchange, response: &DiscoveryResponse) -> SetDigest {
        match exchange.news(response, 0) {
            SetNews::New(digest) => digest,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_stream_begins_without_a_version() {
        let mut exchange = exchange();
        let first = exchange.first();
        assert_eq!((&*first.version_info, &*first.response_nonce), ("", ""));
        let one = response("7", "n1", &[1, 2]);
        let digest = new_digest(&mut exchange, &one);
        let ack = exchange.accept(&one, Some(digest));
        assert_eq!((&*ack.version_info, &*ack.response_nonce, ack.error_detail), ("7", "n1", None));
        assert_eq!(exchange.first().version_info, "");
        // In another order it is the same set.
        assert_eq!(exchange.news(&response("1", "n2", &[2, 1]), 0), SetNews::Known);
    }

    #[test]
    fn a_refused_set_is_no_loop() {
        let mut exchange = exchange();
        exchange.first();
        let good = response("1", "a", &[1]);
        let digest = new_digest(&mut exchange, &good);
        exchange.accept(&good, Some(digest));
        let bad = response("2", "b", &[9]);
        let digest = new_digest(&mut exchange, &bad);
        let nack = exchange.refuse(&bad, digest, "x".repeat(10_000));
        assert_eq!((&*nack.version_info, &*nack.response_nonce), ("1", "b"));
        assert_eq!(nack.error_detail.unwrap().message.len(), MAX_TEXT);
        let waits = [0, 1, 2, 4, 8, 10, 10].map(Duration::from_secs);
        for wait in waits {
            assert_eq!(exchange.news(&response("2", "c", &[9]), 0), SetNews::RefusedBefore(wait));
        }
        // A stream of its own does not begin the waits anew.
        exchange.first();
        assert_eq!(exchange.news(&bad, 0), SetNews::RefusedBefore(waits[6]));
        let again = exchange.refuse_again(&bad);
        assert_eq!((&*again.version_info, again.error_detail.is_some()), ("2", true));
        assert!(matches!(exchange.news(&good, 0), SetNews::New(_)), "after a refusal it is applied again");
        assert!(matches!(exchange.news(&bad, 1), SetNews::New(_)), "under another overlay it may be good");
        exchange.accept(&good, None);
        assert!(matches!(exchange.news(&bad, 0), SetNews::New(_)));
    }
}
