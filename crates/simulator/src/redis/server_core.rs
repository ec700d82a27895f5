//! A server: what it keeps, the scripts that it knows, and who watches them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use weir_units::Micros;

use super::error_text::SimulatedError;
use super::node_state::NodeState;
use super::numbers::integer;
use super::reply::{CommandResult, RespVersion, SimulatedReply};
use super::script_engine::ScriptEngine;

/// Clock of a server.
pub type SimulatedTime = Arc<dyn Fn() -> Micros + Send + Sync>;

/// Callback after each script, in the order in which they ran. It must not call the server.
pub type ScriptObserver = Arc<dyn Fn(&ScriptRun<'_>) + Send + Sync>;

/// A script that ran.
#[derive(Debug, Clone, Copy)]
pub struct ScriptRun<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The server's time.
    pub at: Micros,
    /// The digest of the script.
    pub sha: &'a str,
    /// Text of the script.
    pub text: &'a [u8],
    /// The keys that were declared.
    pub keys: &'a [Vec<u8>],
    /// Arguments beside the keys.
    pub args: &'a [Vec<u8>],
    /// The reply in RESP2.
    pub reply: &'a [u8],
}

/// State of a server.
pub(super) struct ServerCore {
    pub(super) name: String,
    pub(super) time: SimulatedTime,
    pub(super) node: Arc<Mutex<NodeState>>,
    pub(super) process_id: u32,
    pub(super) connections: i64,
    pub(super) observer: Option<ScriptObserver>,
    engine: Result<ScriptEngine, String>,
    /// Texts by their digests.
    scripts: HashMap<String, Arc<[u8]>>,
    /// Pieces of scripts, and what they become.
    pub(super) changes: Vec<(String, String)>,
}

impl ServerCore {
    pub(super) fn new(name: String, time: SimulatedTime) -> Self {
        let node = Arc::new(Mutex::new(NodeState::default()));
        node.lock().histories = [digest(name.as_bytes()), "0".repeat(40)];
        let engine = ScriptEngine::new(&node).map_err(|error| error.to_string());
        Self {
            name,
            time,
            node,
            process_id: 1,
            connections: 0,
            observer: None,
            engine,
            scripts: HashMap::new(),
            changes: Vec::new(),
        }
    }

    pub(super) fn forget_scripts(&mut self) {
        self.scripts.clear();
    }

    /// SCRIPT and its subcommands.
    pub(super) fn script(&mut self, args: &[Vec<u8>]) -> CommandResult {
        let does = args.get(1).ok_or_else(|| SimulatedError::arity("script"))?.to_ascii_uppercase();
        match (does.as_slice(), &args[2..]) {
            (b"LOAD", [text]) => Ok(SimulatedReply::bulk(self.load(text)?)),
            (b"EXISTS", digests @ [_, ..]) => {
                let known = |sha: &Vec<u8>| self.scripts.contains_key(&*String::from_utf8_lossy(sha));
                let known = digests.iter().map(|sha| SimulatedReply::Int(known(sha).into()));
                Ok(SimulatedReply::Array(known.collect()))
            }
            (b"FLUSH", [] | [_]) => {
                self.forget_scripts();
                Ok(SimulatedReply::OK)
            }
            (does, _) => {
                let does = String::from_utf8_lossy(does);
                Err(SimulatedError::from_text(format!("ERR unknown subcommand '{does}'. Try SCRIPT HELP.")))
            }
        }
    }

    fn engine(&mut self) -> Result<&mut ScriptEngine, SimulatedError> {
        self.engine
            .as_mut()
            .map_err(|why| SimulatedError::from_text(format!("ERR Lua does not start: {why}")))
    }

    fn load(&mut self, text: &[u8]) -> Result<String, SimulatedError> {
        let (sha, text) = (digest(text), self.changed(text));
        self.engine()?.compile(&sha, &text)?;
        self.scripts.entry(sha.clone()).or_insert_with(|| text.into());
        Ok(sha)
    }

    fn changed(&self, text: &[u8]) -> Vec<u8> {
        match std::str::from_utf8(text) {
            Ok(text) if !self.changes.is_empty() => {
                let replaced = |text: String, (from, to): &(String, String)| text.replace(from, to);
                self.changes.iter().fold(text.to_owned(), replaced).into_bytes()
            }
            _ => text.to_vec(),
        }
    }

    /// EVAL, or EVALSHA if `by_digest`.
    pub(super) fn evaluate(&mut self, args: &[Vec<u8>], by_digest: bool) -> CommandResult {
        let count = integer(&args[2])?;
        let rest = args.len() - 3;
        let count = match usize::try_from(count) {
            Ok(count) if count <= rest => count,
            Ok(_) => {
                return Err(SimulatedError::new("ERR Number of keys can't be greater than number of args"));
            }
            Err(_) => return Err(SimulatedError::new("ERR Number of keys can't be negative")),
        };
        let (keys, words) = args[3..].split_at(count);
        self.node.lock().check_place(keys)?;
        let sha = if by_digest {
            String::from_utf8_lossy(&args[1]).to_ascii_lowercase()
        } else {
            self.load(&args[1])?
        };
        let Some(text) = self.scripts.get(&sha).cloned() else {
            return Err(SimulatedError::new("NOSCRIPT No matching script. Please use EVAL."));
        };
        let reply = self.engine()?.run(&sha, &text, keys, words);
        if let Some(observer) = &self.observer {
            let mut bytes = Vec::new();
            reply.write(RespVersion::Two, &mut bytes);
            let at = self.node.lock().keys.now;
            let server = self.name.as_str();
            observer(&ScriptRun { server, at, sha: &sha, text: &text, keys, args: words, reply: &bytes });
        }
        Ok(reply)
    }
}

fn digest(text: &[u8]) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}
