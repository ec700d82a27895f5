//! Readiness of this node: one handle, written by the monitors, read by probes and health checks.
//!
//! ```text
//!   NotReady(reason) ⇄ Ready ⇄ Degraded(problems)   the store's monitor, or the memory store at once;
//!          │             │           │              WithoutStore(problems) where the store is needed
//!          └────┬──────┴──────────────┘
//!            Draining               SIGTERM: calls are served, but belong elsewhere
//!               │
//!             Closing               connections end; there is no way back
//! ```

mod problems;
mod refused_files;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::watch;
use weir_store::backend::{BackendStatus, Problem};

pub use self::problems::Problems;
pub use self::refused_files::{FileKind, RefusedFiles};

/// Readiness handle. Clones share the state.
#[derive(Clone)]
pub struct Readiness {
    state: Arc<watch::Sender<State>>,
    /// True from the drain on: read once per HTTP request, so it is no lock.
    draining: Arc<AtomicBool>,
    /// Problems that make answers worse but do not change readiness: lines of text.
    notes: Arc<Mutex<Problems>>,
    /// Sources of more of them, which are asked for when the page is.
    more_notes: Arc<Mutex<Vec<AskForNotes>>>,
    /// True if a node without its store is not ready.
    needs_store: bool,
    /// False while a first answer of the store is needed and has not come.
    has_answered: Arc<AtomicBool>,
    /// Tells whether a client that connects now is served.
    accepts: Arc<OnceLock<AskIfAccepts>>,
    /// The capabilities that services need: the service, and the name of the capability. Set once.
    needed: Arc<OnceLock<Vec<(&'static str, &'static str)>>>,
    /// The services that do not serve for want of a capability.
    missing: Arc<watch::Sender<Vec<&'static str>>>,
}

type AskIfAccepts = Box<dyn Fn() -> bool + Send + Sync>;

type AskForNotes = Box<dyn Fn() -> Vec<Problem> + Send + Sync>;

/// Health state of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Decisions would fail, and why.
    NotReady(Arc<str>),
    /// No node of the store decides, and this node is not ready without.
    WithoutStore(Problems),
    /// Decisions are made.
    Ready,
    /// Some nodes of the store do not decide, or none does; the failure policy of each strategy answers.
    Degraded(Problems),
    /// The node is going away: calls are still served, but new ones belong elsewhere.
    Draining,
    /// The node takes no new connections: calls in flight finish.
    Closing,
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readiness").field(&self.state()).finish()
    }
}

impl Readiness {
    /// The handle of a starting node. If it does not need its store, it is ready without.
    pub fn starting(needs_store: bool) -> Self {
        let state = Arc::new(watch::Sender::new(State::NotReady("starting".into())));
        Self {
            state,
            draining: Arc::default(),
            notes: Arc::new(Mutex::new(Vec::new().into())),
            more_notes: Arc::default(),
            needs_store,
            has_answered: Arc::new(AtomicBool::new(true)),
            accepts: Arc::default(),
            needed: Arc::default(),
            missing: Arc::new(watch::Sender::new(Vec::new())),
        }
    }

    /// Sets the capabilities that services need: the service, and the name of the capability. Later calls are ignored.
    pub fn services_need(&self, needed: Vec<(&'static str, &'static str)>) {
        let _ = self.needed.set(needed);
    }

    /// Makes the node not ready until the store has answered once. After that, only `needs_store` counts.
    #[must_use]
    pub fn needing_first_answer(self) -> Self {
        self.has_answered.store(false, Relaxed);
        self
    }

    /// Says how to find out whether a client that connects now is served. The first one counts.
    pub fn accepts_if(&self, accepts: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.accepts.set(Box::new(accepts));
    }

    /// Adds a source of problems that make answers worse but do not change readiness.
    pub fn notes_also(&self, notes: impl Fn() -> Vec<Problem> + Send + Sync + 'static) {
        self.more_notes.lock().push(Box::new(notes));
    }

    /// Sets if decisions can be made, or why not. A draining node stays so.
    pub fn set(&self, ready: Result<(), String>) {
        self.change(match ready {
            Ok(()) => State::Ready,
            Err(reason) => State::NotReady(reason.into()),
        });
    }

    /// Reports the state of the store's nodes. One of several that does not decide does not make the node unready.
    pub fn report(&self, status: BackendStatus) {
        let can_decide = status.can_decide();
        self.set_missing(&status.missing);
        if can_decide {
            self.has_answered.store(true, Relaxed);
        }
        let needs_store = self.needs_store || !self.has_answered.load(Relaxed);
        *self.notes.lock() = status.notes.into();
        let failures = Problems::from(status.problems);
        match (can_decide, failures.is_empty()) {
            (true, true) => self.change(State::Ready),
            // Unknown, as at the start.
            (false, true) => {}
            (false, false) if needs_store => self.change(State::WithoutStore(failures)),
            (_, false) => self.change(State::Degraded(failures)),
        }
    }

    fn set_missing(&self, capabilities: &[&str]) {
        let needed = self.needed.get().into_iter().flatten();
        let lacking = needed.filter(|(_, capability)| capabilities.contains(capability));
        let services: Vec<&'static str> = lacking.map(|(service, _)| *service).collect();
        self.missing.send_if_modified(|missing| {
            let changes = *missing != services;
            if changes {
                *missing = services;
            }
            changes
        });
    }

    /// Returns the services that do not serve for want of a capability of the store, now and later.
    pub fn missing_services(&self) -> watch::Receiver<Vec<&'static str>> {
        self.missing.subscribe()
    }

    /// Starts draining.
    pub fn drain(&self) {
        self.draining.store(true, Relaxed);
        self.change(State::Draining);
    }

    /// Stops taking connections.
    pub fn close(&self) {
        self.change(State::Closing);
    }

    /// Returns a flag that is true from the drain on.
    pub fn draining(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.draining)
    }

    /// The state now.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Returns true if calls are answered, and a text for people: the state, and the problems that make answers
    /// worse.
    pub fn page(&self) -> (bool, String) {
        let accepts = self.accepts.get().is_none_or(|accepts| accepts());
        let (is_ready, text) = match self.state() {
            State::Ready | State::Degraded(_) if !accepts => {
                (false, "not ready: clients have all open files that they may use\n".to_owned())
            }
            State::Ready => (true, "ready\n".to_owned()),
            State::Degraded(problems) => {
                (true, format!("degraded: {problems}\non_store_failure answers where Redis does not\n"))
            }
            State::NotReady(reason) => (false, format!("not ready: {reason}\n")),
            State::WithoutStore(problems) => (false, format!("not ready: {problems}\n")),
            State::Draining | State::Closing => (false, "not ready: shutting down\n".to_owned()),
        };
        let mut notes = self.notes.lock().lines("note: ");
        for more in self.more_notes.lock().iter() {
            notes += &Problems::from(more()).lines("note: ");
        }
        (is_ready, text + &notes)
    }

    /// The state now and every later one.
    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    fn change(&self, next: State) {
        self.state.send_if_modified(|state| {
            let changes = match *state {
                State::NotReady(_) | State::WithoutStore(_) | State::Ready | State::Degraded(_) => {
                    *state != next
                }
                State::Draining => next == State::Closing,
                State::Closing => false,
            };
            if changes {
                *state = next;
            }
            changes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_store::backend::{NodeStatus, Since};
    use weir_units::Micros;

    #[test]
    fn there_is_no_way_back_from_draining() {
        let readiness = Readiness::starting(true);
        readiness.set(Err("redis is away".to_owned()));
        assert_eq!(readiness.state(), State::NotReady("redis is away".into()));
        readiness.set(Ok(()));
        assert_eq!(readiness.state(), State::Ready);
        readiness.drain();
        readiness.set(Ok(()));
        assert_eq!(readiness.state(), State::Draining);
        readiness.close();
        readiness.drain();
        assert_eq!(readiness.state(), State::Closing);
    }

    fn status(up: &[bool], failures: &[&str], notes: &[&str]) -> BackendStatus {
        let node = |(index, &up): (usize, &bool)| NodeStatus {
            node: format!("10.0.0.{index}:6379"),
            up,
            breaker_open: false,
            breaker_opened: 0,
            evicted_keys: 0,
            may_evict: false,
        };
        let since = Since { wall: Micros(1_704_067_200_000_000), ..Since::now() };
        let problem = |what: &&str| Problem {
            what: (*what).to_owned(),
            since,
            reason: "OOM".to_owned(),
            remedy: "raise it".to_owned(),
        };
        BackendStatus {
            nodes: up.iter().enumerate().map(node).collect(),
            problems: failures.iter().map(problem).collect(),
            notes: notes.iter().map(problem).collect(),
            missing: Vec::new(),
            breakers_opened: 0,
            other_key_secret: false,
            other_rules: false,
        }
    }

    #[test]
    fn a_node_that_does_not_need_the_store_is_degraded_without_it() {
        let readiness = Readiness::starting(false);
        readiness.report(status(&[false], &[], &[]));
        assert_eq!(readiness.state(), State::NotReady("starting".into()), "nothing is known yet");
        readiness.report(status(&[false], &["a cannot decide"], &[]));
        let expected =
            "degraded: a cannot decide since 2024-01-01T00:00:00Z (for 0 s): OOM; what to do: raise it\n";
        assert!(readiness.page().1.starts_with(expected), "{}", readiness.page().1);
        readiness.report(status(&[true], &[], &[]));
        assert_eq!((readiness.state(), readiness.page().1.as_str()), (State::Ready, "ready\n"));
    }

    /// A node with a wrong address of Redis was ready at once, so a roll-out went on to the next node.
    #[test]
    fn a_node_that_needs_a_first_answer_is_degraded_only_after_it() {
        let readiness = Readiness::starting(false).needing_first_answer();
        readiness.report(status(&[false], &["a cannot decide"], &[]));
        assert!(matches!(readiness.state(), State::WithoutStore(_)), "{:?}", readiness.state());
        readiness.report(status(&[true], &[], &[]));
        assert_eq!(readiness.state(), State::Ready);
        readiness.report(status(&[false], &["a cannot decide"], &[]));
        assert!(matches!(readiness.state(), State::Degraded(_)), "{:?}", readiness.state());
    }

    #[test]
    fn one_failed_shard_makes_no_node_unready() {
        let readiness = Readiness::starting(true);
        readiness.report(status(&[true, false, true], &["b cannot decide"], &[]));
        assert!(matches!(readiness.state(), State::Degraded(_)), "{:?}", readiness.state());
        readiness.report(status(&[false, false], &["a cannot decide", "b cannot decide"], &[]));
        assert!(matches!(readiness.state(), State::WithoutStore(_)), "{:?}", readiness.state());
        let text = readiness.page().1;
        assert!(
            text.starts_with("not ready: a cannot decide since ") && text.contains("\nb cannot"),
            "{text}"
        );
    }

    #[test]
    fn notes_do_not_change_readiness() {
        let readiness = Readiness::starting(true);
        readiness.report(status(&[true], &[], &["a evicts keys"]));
        assert_eq!(readiness.state(), State::Ready);
        assert!(
            readiness.page().1.starts_with("ready\nnote: a evicts keys since "),
            "{}",
            readiness.page().1
        );
    }

    #[test]
    fn saying_the_same_again_is_no_change() {
        let readiness = Readiness::starting(true);
        readiness.set(Ok(()));
        let mut states = readiness.subscribe();
        states.mark_unchanged();
        readiness.set(Ok(()));
        assert!(!states.has_changed().unwrap());
        readiness.drain();
        assert!(states.has_changed().unwrap());
    }
}
