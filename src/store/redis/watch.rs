//! The watcher: one per process, apart from the workers.

use std::time::Duration;

use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{Cmd, Value};

use super::connect::connect;
use super::context::LinkContext;
use super::topology::{Address, SlotMap};

/// Between two looks that nobody asked for.
const UNASKED: Duration = Duration::from_secs(2);

/// Between two looks while Redis is away, or while workers keep suspecting.
const SUSPECTED: Duration = Duration::from_millis(100);

/// Looks, reports, and waits until there is a reason to look again.
pub(super) async fn watch(context: &LinkContext, mut report: impl FnMut(Result<(), String>)) {
    let mut watcher = Watcher { context, connection: None, turn: 0 };
    loop {
        let outcome = watcher.look().await;
        let pause = if outcome.is_ok() { UNASKED } else { SUSPECTED };
        report(outcome);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = context.topology.suspected() => tokio::time::sleep(SUSPECTED).await,
        }
    }
}

struct Watcher<'a> {
    context: &'a LinkContext,
    /// The node that answered last; it is asked first.
    connection: Option<(Address, MultiplexedConnection)>,
    /// Where the search for a node that answers begins, so that one that hangs is not always first.
    turn: usize,
}

impl Watcher<'_> {
    /// Asks one node after the other until one answers.
    async fn look(&mut self) -> Result<(), String> {
        if let Some((address, mut connection)) = self.connection.take()
            && self.ask(&address, &mut connection).await.is_ok()
        {
            // In a cluster the next look asks another node, which may know better.
            if !self.context.topology.is_cluster() {
                self.connection = Some((address, connection));
            }
            return Ok(());
        }
        let mut candidates = self.context.topology.candidates();
        let first = self.turn % candidates.len().max(1);
        candidates.rotate_left(first);
        self.turn = self.turn.wrapping_add(1);
        let mut why = "no address is configured".to_owned();
        for address in candidates {
            let outcome = async {
                let mut connection = connect(&address, &self.context.config).await?;
                self.ask(&address, &mut connection).await?;
                Ok::<_, String>(connection)
            };
            match outcome.await {
                Ok(connection) => {
                    self.connection = Some((address, connection));
                    return Ok(());
                }
                Err(error) => why = format!("{address}: {error}"),
            }
        }
        Err(why)
    }

    async fn ask(&self, address: &Address, connection: &mut MultiplexedConnection) -> Result<(), String> {
        if !self.context.topology.is_cluster() {
            return self.exchange(connection, &redis::cmd("PING")).await.map(drop);
        }
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        let reply = self.exchange(connection, &command).await?;
        let map = SlotMap::parse(&reply, address).ok_or("it told no slots: is it part of a cluster?")?;
        self.context.topology.replace(map);
        Ok(())
    }

    async fn exchange(&self, connection: &mut MultiplexedConnection, command: &Cmd) -> Result<Value, String> {
        let timeout = self.context.config.connect_timeout;
        match tokio::time::timeout(timeout.into(), connection.req_packed_command(command)).await {
            Ok(reply) => reply.and_then(Value::extract_error).map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {timeout}")),
        }
    }
}
