//! A connection of a client.

use std::sync::Arc;

use parking_lot::Mutex;

use super::error_text::SimulatedError;
use super::node_state::time_reply;
use super::reply::{CommandResult, SimulatedReply};
use super::requests::RequestReader;
use super::server_commands;
use super::server_core::ServerCore;
use super::session_state::SessionState;

/// A connection to a server. It has no socket: bytes go in, and bytes come out at once.
pub struct SimulatedConnection {
    core: Arc<Mutex<ServerCore>>,
    reader: RequestReader,
    session: SessionState,
}

impl SimulatedConnection {
    pub(super) fn new(core: Arc<Mutex<ServerCore>>) -> Self {
        let id = {
            let mut core = core.lock();
            core.connections += 1;
            core.connections
        };
        Self {
            core,
            reader: RequestReader::default(),
            session: SessionState { id, ..SessionState::default() },
        }
    }

    /// Takes bytes of requests, in any parts, and appends the replies to those that are whole now.
    pub fn receive(&mut self, bytes: &[u8], replies: &mut Vec<u8>) {
        self.reader.feed(bytes);
        while !self.session.closed {
            match self.reader.next() {
                Ok(None) => return,
                Ok(Some(args)) if args.is_empty() => {}
                Ok(Some(args)) => {
                    let reply = self.session.answer(&mut self.core.lock(), &args);
                    reply.write(self.session.version, replies);
                }
                Err(error) => {
                    let text = format!("ERR Protocol error: {}", error.0);
                    SimulatedReply::Error(SimulatedError::from_text(text))
                        .write(self.session.version, replies);
                    self.session.closed = true;
                }
            }
        }
    }

    /// True if the server has closed it: it sends what it has replied, and nothing more.
    pub fn is_closed(&self) -> bool {
        self.session.closed
    }
}

impl SessionState {
    fn answer(&mut self, core: &mut ServerCore, args: &[Vec<u8>]) -> SimulatedReply {
        {
            let mut node = core.node.lock();
            node.keys.now = (core.time)();
            node.is_asking = std::mem::take(&mut self.asking);
        }
        self.run(core, args).unwrap_or_else(SimulatedReply::Error)
    }

    fn run(&mut self, core: &mut ServerCore, args: &[Vec<u8>]) -> CommandResult {
        let name = args[0].to_ascii_uppercase();
        let least = |words: usize| match args.len() < words {
            true => Err(SimulatedError::arity(&String::from_utf8_lossy(&name).to_lowercase())),
            false => Ok(()),
        };
        match name.as_slice() {
            b"EVALSHA" => {
                least(3)?;
                core.evaluate(args, true)
            }
            b"EVAL" => {
                least(3)?;
                core.evaluate(args, false)
            }
            b"SCRIPT" => core.script(args),
            b"TIME" if args.len() == 1 => Ok(time_reply(core.node.lock().keys.now)),
            b"PING" => Ok(match args.get(1) {
                Some(text) => SimulatedReply::bulk(text.clone()),
                None => SimulatedReply::Status("PONG".into()),
            }),
            b"ECHO" if args.len() == 2 => Ok(SimulatedReply::bulk(args[1].clone())),
            b"ASKING" => {
                self.asking = true;
                Ok(SimulatedReply::OK)
            }
            b"QUIT" => {
                self.closed = true;
                Ok(SimulatedReply::OK)
            }
            b"READONLY" | b"READWRITE" => Ok(SimulatedReply::OK),
            b"HELLO" => server_commands::hello(self, core, args),
            b"CLIENT" => server_commands::client(self, args),
            b"AUTH" => server_commands::auth(args),
            b"SELECT" => server_commands::select(args),
            b"INFO" => Ok(server_commands::info(core, args)),
            b"ROLE" => Ok(server_commands::role(core)),
            b"CLUSTER" => server_commands::cluster(core, args),
            _ => core.node.lock().run(args),
        }
    }
}
