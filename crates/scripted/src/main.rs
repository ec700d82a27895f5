//! A server that answers by a script: commands are JSON lines on stdin. The README has them.
//!
//! For tests only. It ends with its stdin, so that no test leaves it behind.

mod call;
mod command;
mod messages;
mod script;
mod server;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};

use crate::command::ScriptCommand;
use crate::messages::WireMessages;
use crate::script::AnswerScript;
use crate::server::ScriptedServer;

const USAGE: &str = "usage: weir-scripted --grpc 127.0.0.1:0";

#[allow(clippy::disallowed_methods)] // it has one argument, and is a program of its own
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = match &arguments[..] {
        [name, address] if name == "--grpc" => address.clone(),
        _ => return failed(USAGE),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("no runtime: {error}")),
    };
    match runtime.block_on(serve(&address)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(reason: &str) -> ExitCode {
    eprintln!("weir-scripted: {reason}");
    ExitCode::FAILURE
}

async fn serve(address: &str) -> Result<(), String> {
    let script = Arc::new(AnswerScript::new(WireMessages::new()?));
    let mut server = ScriptedServer::new(Arc::clone(&script));
    let bound = server.listen(address).await?;
    print(&json!({ "ready": { "grpc": bound.to_string(), "pid": std::process::id() } }))?;
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await.map_err(|error| format!("stdin: {error}"))? {
        if line.trim().is_empty() {
            continue;
        }
        let reply = match serde_json::from_str::<ScriptCommand>(&line) {
            Ok(ScriptCommand::Stop {}) => {
                print(&json!({ "ok": true }))?;
                break;
            }
            Ok(command) => execute(command, &script, &mut server).await,
            Err(error) => Err(format!("{error} in {line}")),
        };
        print(&reply.unwrap_or_else(|error| json!({ "error": error })))?;
    }
    Ok(())
}

async fn execute(
    command: ScriptCommand,
    script: &AnswerScript,
    server: &mut ScriptedServer,
) -> Result<Value, String> {
    match command {
        ScriptCommand::Freeze {} => server.freeze(true),
        ScriptCommand::Thaw {} => server.freeze(false),
        ScriptCommand::Refuse {} => server.refuse().await,
        ScriptCommand::Listen {} => server.reopen().await?,
        ScriptCommand::Goaway {} => server.go_away(),
        ScriptCommand::Log {} => return Ok(json!({ "log": script.log() })),
        ScriptCommand::Clear {} => script.clear(),
        ScriptCommand::Stop {} => {}
        ScriptCommand::ScriptRule(rule) => script.add(rule)?,
    }
    Ok(json!({ "ok": true }))
}

fn print(line: &Value) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| format!("stdout: {error}"))
}
