//! The gRPC servers of one worker: one, or some that differ in how old their connections may become.
//!
//! tonic gives all connections of a server the same age, so those that came together, after a restart
//! of ours, would go and come back together for ever. Dealt to servers whose ages lie between nine and
//! eleven tenths of the configured one, they drift apart.

use std::net::TcpStream;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::connection::{Connection, Open};
use super::dispatch::Dispatch;
use super::worker::stopped;
use super::{ServerError, routes};
use crate::config::ServerConfig;
use crate::store::Store;

/// Different ages, where there is one.
const AGES: u32 = 16;

/// An accepted connection on its way.
type Accepted = (TcpStream, Open);

pub(super) struct Servers {
    hands: Vec<mpsc::UnboundedSender<Accepted>>,
    running: JoinSet<Result<(), tonic::transport::Error>>,
}

impl Servers {
    /// Starts them on the current runtime; each ends when `stop`'s sender is dropped and its calls have
    /// finished.
    pub(super) fn start<S: Store>(
        services: &Dispatch<S>,
        config: &ServerConfig,
        stop: &watch::Receiver<()>,
    ) -> Self {
        let mut servers = Self { hands: Vec::new(), running: JoinSet::new() };
        let patience = config.limits.handshake_timeout.into();
        for age in ages(config.limits.max_connection_age.map(Duration::from)) {
            let (hand, accepted) = mpsc::unbounded_channel();
            servers.hands.push(hand);
            let incoming = UnboundedReceiverStream::new(accepted)
                .map(move |(stream, open): Accepted| Connection::new(stream, open, patience));
            let server = routes::http2(config, age);
            let server =
                server.serve_with_incoming_shutdown(services.clone(), incoming, stopped(stop.clone()));
            servers.running.spawn(server);
        }
        servers
    }

    /// Deals connections out until all servers have ended.
    pub(super) async fn run(
        &mut self,
        mut accepted: mpsc::UnboundedReceiver<Accepted>,
    ) -> Result<(), ServerError> {
        let Self { hands, running } = self;
        let deal = async {
            let mut turns = (0..hands.len()).cycle();
            while let (Some(connection), Some(turn)) = (accepted.recv().await, turns.next()) {
                // A server that has ended ends the connection too.
                let _ = hands[turn].send(connection);
            }
            std::future::pending::<()>().await;
        };
        let end = async {
            while let Some(ended) = running.join_next().await {
                let failed = |error: &dyn std::error::Error| ServerError::Grpc(error.to_string());
                ended.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
            }
            Ok(())
        };
        tokio::select! {
            () = deal => Ok(()),
            ended = end => ended,
        }
    }
}

/// The age of each server: evenly from nine to eleven tenths of `age`, or none for a single one.
fn ages(age: Option<Duration>) -> Vec<Option<Duration>> {
    let Some(age) = age else { return vec![None] };
    let part = |index| age * 9 / 10 + age / 5 * index / (AGES - 1);
    (0..AGES).map(|index| Some(part(index))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_lie_within_a_tenth() {
        let ages = ages(Some(Duration::from_secs(100)));
        assert_eq!((ages[0], ages[15]), (Some(Duration::from_secs(90)), Some(Duration::from_secs(110))));
        assert!(ages.is_sorted());
        assert_eq!(super::ages(None), [None]);
    }
}
