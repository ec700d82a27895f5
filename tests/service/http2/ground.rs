//! The ground of the tests of `fast`: a server, and an ordinary client that must be served whatever others do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::sync::Semaphore;
use weir_config::{Config, ServerConfig, ServerLimits};
use weir_store::{Answers, Decision, Store, Verdicts};

use super::session::Session;
use crate::support::frames::Raw;
use crate::support::server::{ALLOWED, Server, ask, config, config_on_fast};
use crate::support::{SOON, eventually};

pub(super) struct Ground {
    pub(super) server: Server,
}

impl Ground {
    pub(super) fn new() -> Self {
        Self::limited(ServerLimits::default())
    }

    pub(super) fn limited(limits: ServerLimits) -> Self {
        let server = ServerConfig { limits, ..config_on_fast().server };
        Self::on(Server::start(Config { server, ..config() }))
    }

    pub(super) fn on(server: Server) -> Self {
        Self { server }
    }

    /// On a store whose decisions wait for its gate.
    pub(super) fn gated(limits: ServerLimits) -> (Self, Gated) {
        let (server, gated) = (ServerConfig { limits, ..config_on_fast().server }, Gated::closed());
        let made = gated.clone();
        (Self::on(Server::with_store(Config { server, ..config() }, move || made.clone())), gated)
    }

    pub(super) fn raw(&self) -> Raw {
        Raw::connect(self.server.grpc)
    }

    pub(super) fn open(&self) -> Session {
        Session::open(self.server.grpc)
    }

    /// An ordinary client is served, on a connection of its own, which ends with its runtime: in one that is
    /// not run it would neither close nor answer a PING, and be there for half a minute.
    pub(super) fn serves(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let peek = weir_proto::v1::ShouldAllowRequest { peek: true, ..ask("burst/x", "bob") };
            let answer = self.server.client().await.should_allow(peek).await;
            assert!(answer.expect("others are served").into_inner().allowed);
        });
    }

    /// Waits until there are so many connections.
    pub(super) fn holds(&self, connections: u64) {
        let held = || self.server.metric("weir_connections");
        eventually(SOON, "as many connections as there are", || held() == connections);
    }
}

/// A store whose decisions wait for a permit each.
#[derive(Clone)]
pub(crate) struct Gated {
    gate: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

impl Gated {
    pub(crate) fn closed() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), waiting: Arc::default() }
    }

    /// Returns the number of decisions that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    /// Waits until `count` decisions wait.
    pub(super) fn waits_for(&self, count: usize) {
        eventually(SOON, "as many decisions wait", || self.waiting() == count);
    }

    /// Lets all waiting and later decisions go on.
    pub(crate) fn open(&self) {
        self.gate.add_permits(1 << 20);
    }
}

impl Store for Gated {
    fn decide(&self, decisions: &[Decision<'_>], answers: &mut Answers) {
        for _ in decisions {
            let this = self.clone();
            answers.later(async move {
                let waits = Waits::new(&this.waiting);
                this.gate.acquire().await.unwrap().forget();
                drop(waits);
                Ok(Verdicts { decisions: [ALLOWED].into(), ..Verdicts::default() })
            });
        }
    }
}

/// Counts one decision for as long as its caller waits.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, SeqCst);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
