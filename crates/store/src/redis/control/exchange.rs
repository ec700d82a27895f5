//! Commands and scripts of live control, sent to the owner of their slot.

use std::sync::Arc;
use std::time::Duration;

use redis::{Pipeline, RedisError, Value};
use weir_core::key::control_slot;
use weir_units::Micros;

use super::numbers::ControlNumbers;
use super::scripts::{ControlScript, control_script};
use crate::redis::connect::{Connection, RedisPeer, connect};
use crate::redis::context::LinkContext;
use crate::redis::evaluate::evaluate;
use crate::redis::fault::{Fault, as_written};
use crate::redis::topology::Address;

/// Timeout of an exchange. It is longer than that of a decision, because a reply may be large.
const WITHIN: Duration = Duration::from_secs(2);

/// The most redirects of one call.
const MAX_REDIRECTS: usize = 4;

/// The connection, and the keys.
pub(super) struct ControlExchange {
    context: Arc<LinkContext>,
    connection: Option<(Address, Connection)>,
    /// Records, changes and ends, as `lua/control/start.lua` has them.
    records: [String; 3],
    /// Bans and their changes, as `lua/control/bans_position.lua` has them.
    bans: [String; 2],
}

/// What a script is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeysOf {
    Records,
    Bans,
}

/// A script call.
#[derive(Clone, Copy)]
struct ControlCall<'a> {
    keys: KeysOf,
    script: ControlScript,
    packed: &'a [u8],
    arguments: &'a [&'a [u8]],
}

/// Why a script call has no answer.
enum CallFault {
    /// The slot is elsewhere. Nothing was executed.
    Elsewhere {
        to: Address,
        asking: bool,
    },
    Failed(String),
}

impl ControlExchange {
    pub(super) fn new(context: Arc<LinkContext>) -> Self {
        let key = |name| context.config.namespace.control_key(name);
        let (records, bans) = (["records", "changes", "ends"].map(key), ["bans", "ban_changes"].map(key));
        Self { context, connection: None, records, bans }
    }

    /// The first key of these.
    pub(super) fn key(&self, of: KeysOf) -> String {
        self.keys(of).first().cloned().unwrap_or_default()
    }

    fn keys(&self, of: KeysOf) -> &[String] {
        match of {
            KeysOf::Records => &self.records,
            KeysOf::Bans => &self.bans,
        }
    }

    /// The time that Redis is told instead of using its own clock, if any.
    pub(super) fn now(&self) -> Option<Micros> {
        self.context.surroundings.clock.explicit()
    }

    /// Runs a script.
    pub(super) async fn run(
        &mut self,
        keys: KeysOf,
        script: ControlScript,
        numbers: ControlNumbers,
        arguments: &[&[u8]],
    ) -> Result<Value, String> {
        let mut packed = Vec::with_capacity(size_of::<ControlNumbers>());
        numbers.at(self.now()).put(&mut packed);
        let call = ControlCall { keys, script, packed: &packed, arguments };
        let timed = tokio::time::timeout(WITHIN, self.follow(call)).await;
        self.settle(timed)
    }

    /// Sends commands, and returns their replies. An error of one command is the error of all.
    pub(super) async fn send(&mut self, commands: &Pipeline) -> Result<Vec<Value>, String> {
        let sent = async {
            let owner = self.owner()?;
            let replies = self.to(owner).await?.send_each(commands).await;
            let replies = replies.map_err(|error| as_written(&error))?;
            let read = |reply: Value| reply.extract_error().map_err(|error| as_written(&error));
            replies.into_iter().map(read).collect()
        };
        let timed = tokio::time::timeout(WITHIN, sent).await;
        self.settle(timed)
    }

    async fn follow(&mut self, call: ControlCall<'_>) -> Result<Value, String> {
        let (mut address, mut asking) = (self.owner()?, false);
        for _ in 0..MAX_REDIRECTS {
            match self.call(address, asking, call).await {
                Ok(reply) => return Ok(reply),
                Err(CallFault::Failed(why)) => return Err(why),
                Err(CallFault::Elsewhere { to, asking: ask }) => (address, asking) = (to, ask),
            }
            self.context.topology.suspect();
        }
        Err("the slot of live control moves from node to node".to_owned())
    }

    async fn call(
        &mut self,
        address: Address,
        asking: bool,
        ControlCall { keys, script, packed, arguments }: ControlCall<'_>,
    ) -> Result<Value, CallFault> {
        let keys = self.keys(keys).to_vec();
        let is_cluster = self.context.topology.is_cluster();
        let bytes = arguments.iter().map(|argument| argument.len() + 16).sum::<usize>() + 512;
        let host = Arc::clone(&address.host);
        let connection = self.to(address).await.map_err(CallFault::Failed)?;
        let command = |name: crate::redis::evaluate::ScriptName<'_>| {
            let mut command = name.command(2 + keys.len() + arguments.len(), bytes);
            command.arg(keys.len()).arg(&keys).arg(packed);
            arguments.iter().for_each(|argument| {
                command.arg(*argument);
            });
            command
        };
        let evaluated = evaluate(connection, control_script(script), asking, command).await;
        let redirected = |error: RedisError| match Fault::of(&error, &host) {
            Fault::Moved(to) if is_cluster => CallFault::Elsewhere { to, asking: false },
            Fault::Ask(to) if is_cluster => CallFault::Elsewhere { to, asking: true },
            _ => CallFault::Failed(as_written(&error)),
        };
        evaluated.map_err(redirected)
    }

    fn owner(&self) -> Result<Address, String> {
        self.context.topology.owner(control_slot()).map_err(|error| error.to_string())
    }

    /// The connection to this node, which is opened if it is not.
    async fn to(&mut self, address: Address) -> Result<&mut Connection, String> {
        match &mut self.connection {
            Some((open, _)) if *open == address => {}
            other => {
                let opened = connect(&address, &self.context, RedisPeer::Redis).await?;
                *other = Some((address, opened));
            }
        }
        match &mut self.connection {
            Some((_, connection)) => Ok(connection),
            None => Err("there is no connection".to_owned()),
        }
    }

    /// Reconnects after a failure, and after a refusal, too: the next connection may reach another master, or log in as
    /// another user.
    fn settle<T>(
        &mut self,
        timed: Result<Result<T, String>, tokio::time::error::Elapsed>,
    ) -> Result<T, String> {
        let done = timed.unwrap_or_else(|_| Err(format!("no answer within {} s", WITHIN.as_secs())));
        if done.is_err() {
            self.connection = None;
            self.context.topology.suspect();
        }
        done
    }
}
