//! The port and its connections, and what happens to all of them at once.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::Connection;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::call::answer;
use crate::script::AnswerScript;

/// The server. Its connections stay when the port is not accepting, as those of a stopped process do.
pub(crate) struct ScriptedServer {
    script: Arc<AnswerScript>,
    state: watch::Sender<State>,
    bound: Option<SocketAddr>,
    accepting: Option<JoinHandle<()>>,
}

/// What connections watch.
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
        Self { script, state: watch::channel(State::default()).0, bound: None, accepting: None }
    }

    /// Opens a port.
    pub(crate) async fn listen(&mut self, address: &str) -> Result<SocketAddr, String> {
        let failed = |error| format!("{address}: {error}");
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        self.bound = Some(bound);
        let accept = accept(listener, Arc::clone(&self.script), self.state.subscribe());
        self.accepting = Some(tokio::spawn(accept));
        Ok(bound)
    }

    /// Opens the port again.
    pub(crate) async fn reopen(&mut self) -> Result<(), String> {
        match self.bound {
            Some(bound) if self.accepting.is_none() => self.listen(&bound.to_string()).await.map(drop),
            _ => Ok(()),
        }
    }

    /// Closes the port and cuts all connections.
    pub(crate) async fn refuse(&mut self) {
        if let Some(accepting) = self.accepting.take() {
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
}

async fn accept(listener: TcpListener, script: Arc<AnswerScript>, state: watch::Receiver<State>) {
    let mut frozen = state.clone();
    for number in 0.. {
        let accepted = listener.accept().await;
        // A process that is stopped has connections that the machine accepts for it.
        if frozen.wait_for(|state| !state.frozen).await.is_err() {
            return;
        }
        if let Ok((stream, _)) = accepted {
            tokio::spawn(serve(stream, number, Arc::clone(&script), state.clone()));
        }
    }
}

/// Serves a connection until either side ends it.
async fn serve(stream: TcpStream, number: u64, script: Arc<AnswerScript>, mut state: watch::Receiver<State>) {
    let begun = *state.borrow_and_update();
    drop(stream.set_nodelay(true));
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
