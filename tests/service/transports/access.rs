//! Identity and rights over both transports: who is whom, what a right allows, and what a refusal leaves behind.

mod certificates;
mod ends;
#[cfg(feature = "envoy")]
mod envoy;
mod identity;
mod jwt;
mod lists;
mod names;
#[cfg(feature = "queues")]
mod queues;
mod random;
mod rights;
#[cfg(feature = "usage")]
mod usage;

use std::path::Path;
use weir_testing::metrics;

use tokio::net::TcpStream;
use weir_config::{Config, RIGHTS, TransportKind};
use weir_node::access::new_token;

use super::client::Client;
use crate::support::scratch;
use crate::support::server::Server;

/// The common part of all configurations of these tests.
const BASE_CONFIG: &str = "
strategies:
  burst: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1h, burst: 5 } }] }
  other: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1h, burst: 5 } }] }
  parts: { limits: [{ name: all, per: [consumer], bucketed_window: { limit: 5, window: 1h, buckets: 6 } }] }
  permits: { concurrency: { per: [consumer], limit: 5 } }
resources:
  - { match: burst/*, strategy: burst }
  - { match: other/*, strategy: other }
";

/// The queues of these tests.
const QUEUES: &str =
    "queues: { work: { capacity: 10, outcomes: { payload: head } }, rest: { capacity: 10 } }";

/// A server with a file of tokens, each in the name of its holder.
struct Guarded {
    server: Server,
    tokens: Vec<(String, String)>,
    dir: tempfile::TempDir,
}

impl Guarded {
    /// Serves with these holders of tokens, and this text in front of the strategies. `identity` is the rest of
    /// `server.identity`.
    fn start(transport: TransportKind, holders: &[&str], identity: &str, rules: &str) -> Self {
        let dir = scratch::dir("access");
        let made = holders.iter().map(|name| (name.to_string(), new_token(name).unwrap()));
        let (mut tokens, mut lines) = (Vec::new(), "# none\n".to_owned());
        for (name, (token, line)) in made {
            tokens.push((name, token));
            lines += &format!("{line}\n");
        }
        std::fs::write(dir.path().join("tokens"), lines).unwrap();
        let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/envoy/tests/rls/files");
        let envoy = format!("envoy: {{ config: {} }}\n", files.display());
        let envoy = if cfg!(feature = "envoy") { envoy } else { String::new() };
        let queues = if cfg!(feature = "queues") { QUEUES } else { "" };
        let text = format!(
            "server: {{ admin_service: true, inline_limits: true, identity: {{ tokens_file: tokens, {identity} }} }}\n\
             {envoy}{rules}\n{BASE_CONFIG}{queues}"
        );
        let file = scratch::file(dir.path(), "weir.yaml", text);
        let mut config =
            Config::load(&file, &weir::features::overrides()).unwrap_or_else(|errors| panic!("{errors}"));
        config.server.transport = transport;
        Self { server: Server::ready(config), tokens, dir }
    }

    async fn client(&self) -> Client {
        Client::connect(TcpStream::connect(self.server.grpc).await.unwrap()).await
    }

    /// The value of `authorization` for a holder.
    fn bearer(&self, name: &str) -> String {
        let (_, token) = self.tokens.iter().find(|(holder, _)| holder == name).unwrap();
        format!("Bearer {token}")
    }

    /// Returns the counts of decisions and of everything stored, apart from refusals.
    fn counted(&self) -> Vec<String> {
        let page = self.server.get_as("/metrics", &self.bearer("admin")).1;
        let counts =
            ["weir_decisions_total", "weir_cost", "weir_lease", "weir_queue", "weir_reject", "weir_envoy"];
        let is_count = |line: &&str| counts.iter().any(|name| line.starts_with(name));
        page.lines().filter(is_count).map(str::to_owned).collect()
    }

    fn refused(&self, reason: &str) -> u64 {
        let page = self.server.get_as("/metrics", &self.bearer("admin")).1;
        metrics::value(&page, &format!("weir_refused_calls_total{{reason=\"{reason}\"}}"))
    }
}

/// All rights but one.
fn all_but(left_out: &str) -> String {
    let names: Vec<&str> = RIGHTS.iter().map(|row| row.name).filter(|name| *name != left_out).collect();
    names.join(", ")
}
