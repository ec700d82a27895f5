//! The configuration from a control plane.

mod exchange;
mod go;
mod golden;
mod memory;
mod overlay;
mod pings;
mod random;
mod start;
pub(super) mod tls;

use weir_proto::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};

use super::{Ratelimit, command, host, variables};
pub(super) use crate::support::ads::Ads;
use crate::support::ads::TYPE_URL;
use crate::support::command::WEIR;
use crate::support::{Process, SOON, eventually, scratch};

/// The variables of a launcher whose control plane is at `server`, as Envoy Gateway sets them; memory in place of Redis.
fn xds_variables(server: &str, more: &[(&str, &str)]) -> (Vec<(String, String)>, std::net::Ipv4Addr) {
    let host = host();
    let mut all = variables(std::path::Path::new("/nowhere"), host);
    let own = [
        ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
        ("CONFIG_GRPC_XDS_SERVER_URL", server),
        ("CONFIG_GRPC_XDS_NODE_ID", "envoy-ai-gateway-ratelimit"),
        ("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "20ms"),
        ("XDS_CLIENT_BACKOFF_MAX_INTERVAL", "100ms"),
    ];
    for (name, value) in own.iter().chain(more) {
        all.retain(|(other, _)| other != name);
        all.push(((*name).to_owned(), (*value).to_owned()));
    }
    (all, host)
}

/// Starts a process whose control plane is at `server`, and waits for nothing.
fn spawn(server: &str, more: &[(&str, &str)]) -> Ratelimit {
    let (variables, host) = xds_variables(server, more);
    let command = command(std::path::Path::new(WEIR), &["/bin/ratelimit", "--anything"], &variables);
    Ratelimit { process: Process::spawn(command).unwrap(), host, _files: scratch::dir("xds-") }
}

/// Starts a process, and waits until it is healthy.
fn start(server: &str, more: &[(&str, &str)]) -> Ratelimit {
    let mut started = spawn(server, more);
    eventually(SOON, "it is healthy", || {
        if let Some(status) = started.process.exited() {
            panic!("it ended: {status}\n{}", started.log());
        }
        started.get(8080, "/healthcheck").is_some_and(|(status, _)| status == 200)
    });
    started
}

fn policy(requests_per_unit: u32, unit: RateLimitUnit) -> RateLimitPolicy {
    RateLimitPolicy { unit: unit.into(), requests_per_unit, ..RateLimitPolicy::default() }
}

pub(super) fn leaf(key: &str, value: &str, requests: u32) -> RateLimitDescriptor {
    RateLimitDescriptor {
        key: key.to_owned(),
        value: value.to_owned(),
        rate_limit: Some(policy(requests, RateLimitUnit::Day)),
        ..RateLimitDescriptor::default()
    }
}

pub(super) fn config(domain: &str, descriptors: Vec<RateLimitDescriptor>) -> RateLimitConfig {
    RateLimitConfig { name: format!("name-{domain}"), domain: domain.to_owned(), descriptors }
}

impl Ratelimit {
    /// Asks over `/json`: the code of the answer and the limit, or the status and the text of a failure.
    pub(super) fn json(&self, domain: &str, entries: &[(&str, &str)]) -> String {
        let entries: Vec<_> =
            entries.iter().map(|(key, value)| serde_json::json!({ "key": key, "value": value })).collect();
        let body = serde_json::json!({ "domain": domain, "descriptors": [{ "entries": entries }] });
        let (status, text) = self.post("/json", &body.to_string());
        let Ok(answer) = serde_json::from_str::<serde_json::Value>(&text) else {
            return format!("{status} {}", text.trim());
        };
        let limit = &answer["statuses"][0]["currentLimit"];
        let code = answer["overallCode"].as_str().unwrap_or_default();
        match limit.get("unit") {
            Some(unit) => {
                let number = limit.get("requestsPerUnit").map_or(0, |number| number.as_u64().unwrap());
                format!("{code} {number}/{}", unit.as_str().unwrap())
            }
            None => format!("{code} without limit"),
        }
    }

    /// The value of a metric without labels, or of a whole series.
    pub(super) fn metric(&self, port: u16, name: &str) -> Option<f64> {
        let (_, page) = self.get(port, "/metrics")?;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        Some(line.parse().unwrap())
    }
}
