//! The connection to the owner of one slot, for data that nodes share.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Pipeline, RedisError, Value};
use weir_core::key::Namespace;
use weir_units::Micros;

use super::RedisShared;
use super::connect::{Connection, RedisPeer, connect};
use super::context::LinkContext;
use super::evaluate::{ScriptName, evaluate};
use super::fault::{Fault, as_written};
use super::topology::Address;
use crate::scripts::{AskScripts, Commands, LinkFuture, LinkReply, LinkScript, OpenLinks, SlotLink};

/// Timeout of an exchange. It is longer than that of a decision, because a reply may be large.
const WITHIN: Duration = Duration::from_secs(2);

const MAX_REDIRECTS: usize = 4;

struct RedisSlotLink {
    context: Arc<LinkContext>,
    of: &'static str,
    slot: u16,
    connection: Option<(Address, Connection)>,
}

/// Reason that a script call has no answer.
enum CallFault {
    Elsewhere { to: Address, asking: bool },
    Failed(String),
}

impl OpenLinks for RedisShared {
    fn link(&self, of: &'static str, slot: u16) -> Box<dyn SlotLink> {
        Box::new(RedisSlotLink { context: Arc::clone(&self.context), of, slot, connection: None })
    }

    fn connections(&self) -> Arc<dyn AskScripts> {
        Arc::new(self.store())
    }

    fn lazy_connections(&self) -> Arc<dyn AskScripts> {
        Arc::new(self.lazy_store())
    }
}

impl SlotLink for RedisSlotLink {
    fn send<'a>(
        &'a mut self,
        commands: &'a Commands,
        harmless: fn(&str) -> bool,
    ) -> LinkFuture<'a, Vec<LinkReply>> {
        Box::pin(async move {
            if commands.is_empty() {
                return Ok(Vec::new());
            }
            let timed = tokio::time::timeout(WITHIN, self.exchange(commands, harmless)).await;
            self.settle(timed)
        })
    }

    fn run<'a>(&'a mut self, run: LinkScript<'a>) -> LinkFuture<'a, LinkReply> {
        Box::pin(async move {
            let timed = tokio::time::timeout(WITHIN, self.follow(run)).await;
            self.settle(timed).map(reply_of)
        })
    }

    fn namespace(&self) -> &Namespace {
        &self.context.config.namespace
    }

    fn now(&self) -> Option<Micros> {
        self.context.surroundings.clock.explicit()
    }
}

impl RedisSlotLink {
    async fn exchange(
        &mut self,
        commands: &Commands,
        harmless: fn(&str) -> bool,
    ) -> Result<Vec<LinkReply>, String> {
        let mut pipeline = Pipeline::with_capacity(commands.len());
        for words in commands.iter() {
            let mut command = Cmd::new();
            words.iter().for_each(|word| {
                command.arg(word.as_slice());
            });
            pipeline.add_command(command);
        }
        let owner = self.owner()?;
        let replies = self.to(owner).await?.send_each(&pipeline).await;
        let replies = replies.map_err(|error| as_written(&error))?;
        let read = |reply: Value| match reply.extract_error().map_err(|error| as_written(&error)) {
            Ok(reply) => Ok(reply_of(reply)),
            Err(error) if harmless(&error) => Ok(LinkReply::Nil),
            Err(error) => Err(error),
        };
        replies.into_iter().map(read).collect()
    }

    async fn follow(&mut self, run: LinkScript<'_>) -> Result<Value, String> {
        let (mut address, mut asking) = (self.owner()?, false);
        for _ in 0..MAX_REDIRECTS {
            match self.call(address, asking, run).await {
                Ok(reply) => return Ok(reply),
                Err(CallFault::Failed(why)) => return Err(why),
                Err(CallFault::Elsewhere { to, asking: ask }) => (address, asking) = (to, ask),
            }
            self.context.topology.suspect();
        }
        Err(format!("the slot of {} moves from node to node", self.of))
    }

    async fn call(
        &mut self,
        address: Address,
        asking: bool,
        run: LinkScript<'_>,
    ) -> Result<Value, CallFault> {
        let LinkScript { script, keys, arguments } = run;
        let is_cluster = self.context.topology.is_cluster();
        let bytes = arguments.iter().map(|argument| argument.len() + 16).sum::<usize>() + 512;
        let host = Arc::clone(&address.host);
        let connection = self.to(address).await.map_err(CallFault::Failed)?;
        let command = |name: ScriptName<'_>| {
            let mut command = name.command(1 + keys.len() + arguments.len(), bytes);
            command.arg(keys.len()).arg(keys);
            arguments.iter().for_each(|argument| {
                command.arg(*argument);
            });
            command
        };
        let evaluated = evaluate(connection, script, asking, command).await;
        let redirected = |error: RedisError| match Fault::new(&error, &host) {
            Fault::Moved(to) if is_cluster => CallFault::Elsewhere { to, asking: false },
            Fault::Ask(to) if is_cluster => CallFault::Elsewhere { to, asking: true },
            _ => CallFault::Failed(as_written(&error)),
        };
        evaluated.map_err(redirected)
    }

    fn owner(&self) -> Result<Address, String> {
        self.context.topology.owner(self.slot).map_err(|error| error.to_string())
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

pub(super) fn reply_of(value: Value) -> LinkReply {
    match value {
        Value::Nil => LinkReply::Nil,
        Value::Int(number) => LinkReply::Number(number),
        Value::Double(number) => LinkReply::Double(number),
        Value::BulkString(bytes) => LinkReply::Bytes(bytes),
        Value::Array(values) => LinkReply::List(values.into_iter().map(reply_of).collect()),
        _ => LinkReply::Other,
    }
}
