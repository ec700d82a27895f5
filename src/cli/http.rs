//! The commands of the HTTP listener: the example that `weir serve` prints, and `weir openapi`.

pub(super) mod openapi;

use serde_json::json;
use weir_config::{Config, ListenAddress};

use super::quoted::quoted;
use super::sample::{SampleQuestion, question};

/// Returns a command that asks the listener at this address.
pub(super) fn curl(config: &Config, scheme: &str, address: &ListenAddress) -> Option<String> {
    let SampleQuestion { resource, consumer, strategy, attributes } = question(config)?;
    let mut body = json!({ "resource": resource, "consumer": consumer });
    if let Some(strategy) = strategy {
        body["strategy"] = json!(strategy);
    }
    for name in attributes {
        body["attributes"][name] = json!("example");
    }
    let (socket, host) = match address {
        ListenAddress::Tcp(address) => (String::new(), address.to_string()),
        ListenAddress::Unix(path) => {
            (format!("--unix-socket {} ", quoted(&path.display().to_string())), "localhost".to_owned())
        }
    };
    let body = quoted(&body.to_string());
    Some(format!(
        "curl {socket}{scheme}://{host}/weir.v1.RateLimitService/ShouldAllow -H 'Content-Type: application/json' -d {body}"
    ))
}
