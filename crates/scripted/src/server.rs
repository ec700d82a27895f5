//! The ports and their connections, and what happens to all of them at once.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::Connection;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::call::answer;
use crate::script::AnswerScript;

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// gRPC over HTTP/2.
    Grpc,
    /// JSON over HTTP/1.1, by Connect's protocol.
    Http,
}

/// The server. Its connections stay when its ports are not accepting, as those of a stopped process do.
pub(crate) struct ScriptedServer {
    script: Arc<AnswerScript>,
    state: watch::Sender<State>,
    ports: Vec<ScriptedPort>,
}

/// A port. It can be closed and opened again.
struct ScriptedPort {
    protocol: Protocol,
    bound: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

/// The state that connections watch.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct State {
    frozen: bool,
    /// Counts the commands that cut all connections.
    cuts: u64,
    /// Counts the commands that send GOAWAY.
    goaways: u64,
}

impl ScriptedServer {
    /// Creates a server without a port.
    pub(crate) fn new(script: Arc<AnswerScript>) -> Self {
        Self { script, state: watch::channel(State::default()).0, ports: Vec::new() }
    }

    /// Opens a port.
    pub(crate) async fn listen(&mut self, protocol: Protocol, address: &str) -> Result<SocketAddr, String> {
        let (bound, accepting) = self.accept(protocol, address).await?;
        self.ports.push(ScriptedPort { protocol, bound, accepting: Some(accepting) });
        Ok(bound)
    }

    /// Opens the ports again.
    pub(crate) async fn reopen(&mut self) -> Result<(), String> {
        for index in 0..self.ports.len() {
            let ScriptedPort { protocol, bound, ref accepting } = self.ports[index];
            if accepting.is_none() {
                let (_, accepting) = self.accept(protocol, &bound.to_string()).await?;
                self.ports[index].accepting = Some(accepting);
            }
        }
        Ok(())
    }

    /// Closes the ports and cuts all connections.
    pub(crate) async fn refuse(&mut self) {
        for accepting in self.ports.iter_mut().filter_map(|port| port.accepting.take()) {
            accepting.abort();
            // The port is closed when the task has ended.
            drop(accepting.await);
        }
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Stops or goes on with everything.
    pub(crate) fn freeze(&self, frozen: bool) {
        self.state.send_modify(|state| state.frozen = frozen);
    }

    /// Sends GOAWAY on every connection.
    pub(crate) fn go_away(&self) {
        self.state.send_modify(|state| state.goaways += 1);
    }

    async fn accept(
        &self,
        protocol: Protocol,
        address: &str,
    ) -> Result<(SocketAddr, JoinHandle<()>), String> {
        let failed = |error| format!("{address}: {error}");
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let accepting = accept(listener, protocol, Arc::clone(&self.script), self.state.subscribe());
        Ok((bound, tokio::spawn(accepting)))
    }
}

async fn accept(
    listener: TcpListener,
    protocol: Protocol,
    script: Arc<AnswerScript>,
    state: watch::Receiver<State>,
) {
    let mut frozen = state.clone();
    for number in 0.. {
        let accepted = listener.accept().await;
        // A process that is stopped has connections that the machine accepts for it.
        if frozen.wait_for(|state| !state.frozen).await.is_err() {
            return;
        }
        if let Ok((stream, _)) = accepted {
            drop(stream.set_nodelay(true));
            match protocol {
                Protocol::Grpc => tokio::spawn(serve(stream, number, Arc::clone(&script), state.clone())),
                Protocol::Http => {
                    tokio::spawn(serve_http(stream, number, Arc::clone(&script), state.clone()))
                }
            };
        }
    }
}

/// Serves a connection of HTTP until either side ends it.
async fn serve_http(
    stream: TcpStream,
    number: u64,
    script: Arc<AnswerScript>,
    mut state: watch::Receiver<State>,
) {
    let begun = *state.borrow_and_update();
    let mut connection = std::pin::pin!(crate::http_call::connection(stream, number, script));
    loop {
        let now = *state.borrow_and_update();
        if now.cuts != begun.cuts {
            return;
        }
        tokio::select! {
            biased;
            changed = state.changed() => if changed.is_err() { return },
            _ = &mut connection, if !now.frozen => return,
        }
    }
}

/// Serves a connection of gRPC until either side ends it.
async fn serve(stream: TcpStream, number: u64, script: Arc<AnswerScript>, mut state: watch::Receiver<State>) {
    let begun = *state.borrow_and_update();
    let Ok(mut connection): Result<Connection<_, Bytes>, _> = h2::server::handshake(stream).await else {
        return;
    };
    let lost = Arc::new(Notify::new());
    let mut goaways = begun.goaways;
    loop {
        let now = *state.borrow_and_update();
        if now.cuts != begun.cuts {
            return;
        }
        if now.frozen {
            if state.changed().await.is_err() {
                return;
            }
            continue;
        }
        if now.goaways != goaways {
            goaways = now.goaways;
            connection.graceful_shutdown();
        }
        tokio::select! {
            biased;
            changed = state.changed() => if changed.is_err() { return },
            () = lost.notified() => return,
            call = connection.accept() => match call {
                Some(Ok((request, response))) => {
                    tokio::spawn(answer(request, response, number, Arc::clone(&script), Arc::clone(&lost)));
                }
                _ => return,
            },
        }
    }
}
