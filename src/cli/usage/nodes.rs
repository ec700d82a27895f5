//! `weir nodes`: the processes of the deployment, and which files and changes they have in force.

use std::process::ExitCode;

use anyhow::Result;
use prost_types::Timestamp;
use weir_proto::v1::{DeploymentNode, NodeState};

use super::super::server_args::AskArgs;
use super::super::terminal::{clean_cell, text_table};
use super::super::{done, say};

pub(in crate::cli) const EXAMPLES: &str = "\
Examples:
  weir nodes                                  every node, its state, version and files
  weir nodes --server http://10.0.0.1:8081    asked of another node
  weir nodes --output json";

pub(crate) fn run(args: AskArgs) -> ExitCode {
    done(nodes(&args))
}

fn nodes(args: &AskArgs) -> Result<()> {
    let response = args.server.answer(async |client| client.list_nodes().await)?;
    if !response.incomplete.is_empty() {
        say(&format!("note: other nodes are missing: {}", clean_cell(&response.incomplete)));
    }
    args.output.print("weir.v1.ListNodesResponse", &response, || page(&response.nodes))
}

/// The table of the nodes that run, and below it that of the others.
pub(super) fn page(nodes: &[DeploymentNode]) -> String {
    let (running, ended): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.ended_at.is_none());
    let mut text = table(running.into_iter());
    if !ended.is_empty() {
        text += "\nended within the last hour\n";
        text += &table(ended.into_iter());
    }
    text
}

/// Titles of the columns of a node.
pub(super) const HEAD: [&str; 8] =
    ["node", "address", "state", "version", "began", "files", "files read", "live control"];

/// The cells of a node.
pub(super) fn cells(node: &DeploymentNode) -> [String; 8] {
    let at = |time: &Option<Timestamp>| time.as_ref().map(ToString::to_string).unwrap_or_default();
    let state = match node.state() {
        NodeState::Ended => format!("ended {}", at(&node.ended_at)),
        NodeState::Serving => "serving".to_owned(),
        NodeState::Degraded => "degraded".to_owned(),
        NodeState::NotReady => "not ready".to_owned(),
        NodeState::Draining => "draining".to_owned(),
        NodeState::Unspecified => "unknown".to_owned(),
    };
    let control = match node.control_version {
        0 => "-".to_owned(),
        version => version.to_string(),
    };
    let (started, read) = (at(&node.started_at), at(&node.files_read_at));
    [&node.name, &node.address, &state, &node.version, &started, &node.files, &read, &control]
        .map(|cell| clean_cell(cell))
}

/// Nodes as a table with columns two blanks apart.
fn table<'n>(nodes: impl Iterator<Item = &'n DeploymentNode>) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(nodes.map(cells));
    text_table(&rows, HEAD.len())
}
