//! `weir lease list`, and `weir lease release` without an id or with several: the leases of a key by hand.

use std::fmt::Write as _;

use anyhow::Result;
use weir_load::client::{Client, ClientError};
use weir_proto::v1::{
    HeldLease, ListLeasesRequest, ListLeasesResponse, ReleaseLeasesRequest, ReleaseLeasesResponse,
};

use super::super::server_args::AskArgs;
use super::super::terminal::clean_cell;
use super::super::{attribute, render};

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// A strategy with `concurrency`
    strategy: String,
    /// Resource, for example exports/acme
    resource: String,
    /// Consumer; optional where permits are not counted by consumer
    #[arg(default_value = "", hide_default_value = true)]
    consumer: String,
    /// A further fact about the calls, such as region=eu; may be given several times
    #[arg(long = "attribute", value_parser = attribute, value_name = "NAME=VALUE")]
    attributes: Vec<(String, String)>,
    #[command(flatten)]
    ask: AskArgs,
}

/// Lists all leases of a key.
pub(super) fn list(args: ListArgs) -> Result<bool> {
    let ListArgs { strategy, resource, consumer, attributes, ask } = args;
    let attributes = attributes.into_iter().collect();
    let request = ListLeasesRequest { resource, consumer, strategy, attributes, page_token: String::new() };
    let response = ask.server.answer(async |client| every_page(client, request).await)?;
    ask.output.print("weir.v1.ListLeasesResponse", &response, || table(&response.leases))?;
    Ok(true)
}

/// Pages that are read at most: a key has at most 10,000 leases, and some may be renewed meanwhile.
const MAX_PAGES: usize = 200;

async fn every_page(
    client: &mut Client,
    mut request: ListLeasesRequest,
) -> Result<ListLeasesResponse, ClientError> {
    let mut all = ListLeasesResponse::default();
    for _ in 0..MAX_PAGES {
        let page = client.list_leases(request.clone()).await?;
        all.leases.extend(page.leases);
        all.count = page.count;
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    Ok(all)
}

fn table(leases: &[HeldLease]) -> String {
    if leases.is_empty() {
        return "no leases\n".to_owned();
    }
    let widest = leases.iter().map(|lease| clean_cell(&lease.id).chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for HeldLease { id, weight, held_for, expires_after, partition } in leases {
        let span =
            |span: &Option<prost_types::Duration>| span.as_ref().map(render::duration).unwrap_or_default();
        let permits = if *weight == 1 { "1 permit".to_owned() } else { format!("{weight} permits") };
        let part = if partition.is_empty() {
            String::new()
        } else {
            format!(", partition {}", clean_cell(partition))
        };
        let (held, ends, id) = (span(held_for), span(expires_after), clean_cell(id));
        let _ = writeln!(out, "{id:widest$}  {permits}, held for {held}, ends in {ends}{part}");
    }
    out
}

/// Releases leases: these ids, or all of the key. Returns true if any was held.
pub(super) fn release(mut request: ReleaseLeasesRequest, ask: &AskArgs) -> Result<bool> {
    request.all = request.ids.is_empty();
    let response = ask.server.answer(async |client| {
        let mut all = ReleaseLeasesResponse::default();
        // A call releases some; the end is there when one finds nothing to release.
        for _ in 0..MAX_PAGES {
            let some = client.release_leases(request.clone()).await?;
            let is_done = some.released.is_empty() || some.left == 0 || !request.all;
            all.left = some.left;
            all.released.extend(some.released);
            if is_done {
                break;
            }
        }
        Ok(all)
    })?;
    ask.output.print("weir.v1.ReleaseLeasesResponse", &response, || {
        let ids: String = response.released.iter().map(|id| format!("  {}\n", clean_cell(id))).collect();
        format!("{} released, {} left\n{ids}", response.released.len(), response.left)
    })?;
    Ok(!response.released.is_empty())
}
