//! `weir health`: whether a server is ready, for health checks of containers and scripts.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::server_args::ServerArgs;
use super::{answered, print};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir health                                         exits 0 if decisions are served, 1 if not, 2 on an error
  weir health weir.v1.QueueService                    of another service
  weir health ''                                      whether the process is alive, also while it drains";

#[derive(Debug, clap::Args)]
pub(crate) struct HealthArgs {
    /// The full name of a service; an empty one asks whether the process is alive [default:
    /// weir.v1.RateLimitService, or Envoy's where only that one is served]
    service: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

/// The services whose readiness is that of the server. In the place of ratelimit there is only the second.
const SERVICES: [&str; 2] = ["weir.v1.RateLimitService", "envoy.service.ratelimit.v3.RateLimitService"];

pub(crate) fn run(args: HealthArgs) -> ExitCode {
    answered(health(args))
}

fn health(args: HealthArgs) -> Result<bool> {
    let asked: Vec<&str> = match &args.service {
        Some(service) => vec![service],
        None => SERVICES.to_vec(),
    };
    let status = args.server.answer(async |client| {
        let mut found = Ok(None);
        for service in asked {
            found = client.health(service).await;
            if !matches!(found, Ok(None)) {
                break;
            }
        }
        found
    })?;
    let (word, serving) = match status {
        Some(true) => ("serving", true),
        Some(false) => ("not serving", false),
        None => ("not serving: the server has no such service", false),
    };
    print(&format!("{word}\n")).context("the answer cannot be printed")?;
    Ok(serving)
}
