//! A server that answers by a script: commands are JSON lines on stdin. The README has them.
//!
//! For tests only. It ends with its stdin, so that no test leaves it behind.

mod call;
mod command;
mod http_call;
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
use crate::server::{Protocol, ScriptedServer};

const USAGE: &str = "usage: weir-scripted --grpc 127.0.0.1:0 --http 127.0.0.1:0";

#[allow(clippy::disallowed_methods)] // it has two arguments, and is a program of its own
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ["--grpc", grpc, "--http", http] = arguments[..] else { return failed(USAGE) };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("no runtime: {error}")),
    };
    match runtime.block_on(serve(grpc, http)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(reason: &str) -> ExitCode {
    eprintln!("weir-scripted: {reason}");
    ExitCode::FAILURE
}

async fn serve(grpc: &str, http: &str) -> Result<(), String> {
    let script = Arc::new(AnswerScript::new(WireMessages::new()?));
    let mut server = ScriptedServer::new(Arc::clone(&script));
    let grpc = server.listen(Protocol::Grpc, grpc).await?;
    let http = server.listen(Protocol::Http, http).await?;
    let pid = std::process::id();
    print(&json!({ "ready": { "grpc": grpc.to_string(), "http": http.to_string(), "pid": pid } }))?;
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
        ScriptCommand::ScriptRule(rule) => script.add(*rule)?,
    }
    Ok(json!({ "ok": true }))
}

fn print(line: &Value) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| format!("stdout: {error}"))
}
