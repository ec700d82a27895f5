//! One thread, with its connections and its share of the calls.

mod record;
mod refusal;

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(super) use self::record::{Record, Trace};
use super::LoadError;
use super::link::{LinkEvent, LoadLink};
use super::outcome::{CallOutcome, LoadCall};
use super::plan::{Pace, Plan, PlanEnd};
use super::run_watch::RunWatch;
use super::schedule::Schedule;
use super::service::CallShape;
use super::spread::Keys;
use super::tally::{Counts, Tally};
use weir_time::clock::monotonic;

/// Size of the read buffer.
const BUFFER: usize = 256 << 10;

/// Longest time without a connection at the end of a run that does not count as its cause: a server may be closing one
/// connection and opening the next.
const RECONNECT_NS: u64 = 100_000_000;

/// Interval of checks for timeouts, lost connections and a stop.
const LOOK_NS: u64 = 10_000_000;

pub(super) struct LoadWorker<'a> {
    plan: &'a Plan,
    service: &'a CallShape,
    watch: &'a RunWatch,
    begin: Instant,
    links: Vec<LoadLink>,
    /// Most pending calls per link.
    room: Vec<u64>,
    keys: Keys,
    schedule: Schedule,
    tally: Tally,
    trace: Option<Trace>,
    message: Vec<u8>,
    count_from_ns: u64,
    end_ns: u64,
    /// Counted calls left to make.
    calls_left: u64,
    next_link: usize,
    /// Time of the last established link.
    connected_ns: u64,
    /// True if any link is connected.
    was_connected: bool,
    /// True once any call was decided: later failures are counted, while earlier ones may mean that all calls would
    /// fail.
    has_decided: bool,
    refusal: Option<LoadError>,
    published: Counts,
}

/// Index of a thread within its run.
pub(super) struct LoadShare {
    pub(super) thread: usize,
    pub(super) links: Vec<LoadLink>,
    pub(super) in_flight: u64,
    pub(super) trace: Option<Trace>,
}

impl<'a> LoadWorker<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        service: &'a CallShape,
        watch: &'a RunWatch,
        begin: Instant,
        share: LoadShare,
    ) -> Result<Self, LoadError> {
        let invalid = |what: &str| LoadError::Plan(what.to_owned());
        let seed = plan.seed.wrapping_add(share.thread as u64);
        let keys = Keys::new(plan.ask.keys, plan.ask.spread, seed)
            .ok_or_else(|| invalid("the exponent of a zipf spread is a number from 0"))?;
        let count_from_ns = ns(plan.warm_up);
        let (end_ns, calls_left) = match plan.end {
            PlanEnd::After(duration) => (count_from_ns.saturating_add(ns(duration)), u64::MAX),
            PlanEnd::Calls(calls) => (u64::MAX, part(calls, share.thread, plan.threads)),
        };
        let count = share.links.len();
        Ok(Self {
            room: (0..count).map(|link| part(share.in_flight, link, count)).collect(),
            plan,
            service,
            watch,
            begin,
            links: share.links,
            keys,
            schedule: Schedule::new(plan.pace, share.thread, plan.threads),
            tally: Tally::new().map_err(|_| invalid("no histogram has these bounds"))?,
            trace: share.trace,
            message: Vec::with_capacity(service.longest() + 8),
            count_from_ns,
            end_ns,
            calls_left,
            next_link: 0,
            connected_ns: 0,
            was_connected: true,
            has_decided: false,
            refusal: None,
            published: Counts::default(),
        })
    }

    /// Makes the calls and waits for their answers.
    pub(super) fn run(mut self) -> Result<Tally, LoadError> {
        // Makes sleeps precise; by default they end up to 50 µs late. If it cannot be set, they end later.
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut buffer = vec![0; BUFFER];
        let mut look_ns = 0;
        let mut is_sending = true;
        loop {
            let now_ns = self.now_ns();
            if now_ns >= look_ns {
                look_ns = now_ns + LOOK_NS;
                self.look_after(now_ns);
            }
            is_sending = is_sending && self.make_calls(now_ns);
            self.flush(now_ns);
            if let Some(refusal) = self.refusal.take() {
                return Err(refusal);
            }
            self.was_connected = self.links.iter().any(LoadLink::is_connected);
            if self.tally.gave_up.is_some() || (!is_sending && self.unanswered() == 0) {
                break;
            }
            self.wait(is_sending, look_ns, &mut buffer)?;
        }
        self.links.iter_mut().for_each(|link| link.connection.finish());
        self.flush(self.now_ns());
        self.publish();
        self.tally.missed = self.schedule.missed(self.end_ns.min(self.now_ns()));
        self.tally.gave_up = self.tally.gave_up.take().or_else(|| self.left_alone(self.now_ns()));
        if let Some(trace) = self.trace.take() {
            trace
                .finish()
                .map_err(|source| LoadError::System { what: "the record cannot be written", source })?;
        }
        Ok(self.tally)
    }

    fn now_ns(&self) -> u64 {
        ns(monotonic() - self.begin)
    }

    /// Reason why the run did less than it should, if the server was gone at its end.
    fn left_alone(&self, now_ns: u64) -> Option<String> {
        let away_ns = now_ns.saturating_sub(self.connected_ns);
        let is_away = !self.was_connected && (self.tally.missed > 0 || away_ns > RECONNECT_NS);
        is_away.then(|| format!("no connection for the last {:.1?}", Duration::from_nanos(away_ns)))
    }

    fn unanswered(&self) -> usize {
        self.links.iter().map(|link| link.connection.unanswered()).sum()
    }

    /// Makes all calls that are due and have room. Returns true if more are to come.
    fn make_calls(&mut self, now_ns: u64) -> bool {
        let mut full = 0;
        while full < self.links.len() {
            let due_ns = self.schedule.due_ns().unwrap_or(now_ns);
            let counts = due_ns >= self.count_from_ns;
            if due_ns >= self.end_ns || (counts && self.calls_left == 0) {
                return false;
            }
            if due_ns > now_ns {
                break;
            }
            let link = self.next_link;
            // A closed loop fills one connection after the other, so that each is written to once; an open loop uses
            // them in turn.
            if !self.has_room(link) {
                full += 1;
                self.next_link = (link + 1) % self.links.len();
                continue;
            }
            full = 0;
            if self.schedule.due_ns().is_some() {
                self.next_link = (link + 1) % self.links.len();
            }
            self.make_call(link, LoadCall { due_ns, sent_ns: now_ns, counts, key: 0 });
        }
        // Calls due before the end are still made after it, unless there is no room.
        now_ns < self.end_ns
    }

    fn has_room(&self, link: usize) -> bool {
        let connection = &self.links[link].connection;
        self.links[link].is_connected()
            && (connection.unanswered() as u64) < self.room[link]
            && connection.has_room()
    }

    fn make_call(&mut self, link: usize, mut call: LoadCall) {
        call.key = self.service.write(&mut self.keys, &mut self.message);
        self.links[link].connection.call(&self.message, call);
        self.schedule.step();
        self.calls_left -= u64::from(call.counts);
        let is_open = self.plan.pace != Pace::Closed;
        self.tally.sent(call, self.service.mode.decisions(), is_open);
    }

    fn flush(&mut self, now_ns: u64) {
        self.each_link(now_ns, |link, sink| link.flush(now_ns, sink));
    }

    /// Polls the sockets until the next call or the next check, and reads received bytes.
    fn wait(&mut self, is_sending: bool, look_ns: u64, buffer: &mut [u8]) -> Result<(), LoadError> {
        let has_room = is_sending && (0..self.links.len()).any(|link| self.has_room(link));
        let until_ns = self.schedule.wake_ns(has_room, look_ns);
        let left_ns = until_ns.saturating_sub(self.now_ns());
        let timeout = Timespec { tv_sec: 0, tv_nsec: left_ns.min(LOOK_NS) as i64 };
        let interests: Vec<_> = self.links.iter().map(LoadLink::interest).collect();
        let mut fds: Vec<_> =
            interests.iter().flatten().map(|(socket, flags)| PollFd::new(socket, *flags)).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(LoadError::System { what: "poll", source: error.into() }),
        }
        let mut ready = fds.iter().map(|fd| fd.revents().intersects(!PollFlags::empty()));
        let ready: Vec<bool> =
            interests.iter().map(|interest| interest.is_some() && ready.next() == Some(true)).collect();
        let now_ns = self.now_ns();
        let mut ready = ready.into_iter();
        self.each_link(now_ns, |link, sink| match ready.next() {
            Some(true) => link.read(buffer, now_ns, sink),
            _ => LinkEvent::Fine,
        });
        Ok(())
    }

    /// Handles timeouts, lost connections and a stop.
    fn look_after(&mut self, now_ns: u64) {
        let timeout_ns = ns(self.plan.timeout);
        self.each_link(now_ns, |link, sink| {
            link.connection.expire(now_ns.saturating_sub(timeout_ns), sink);
            link.mend(now_ns);
            LinkEvent::Fine
        });
        if self.links.iter().any(LoadLink::is_connected) {
            self.connected_ns = now_ns;
        } else if now_ns - self.connected_ns > timeout_ns {
            self.tally.gave_up = Some(format!("no connection for {:?}", self.plan.timeout));
        }
        if !self.has_decided && self.links.iter().any(|link| link.is_silent(now_ns, timeout_ns)) {
            let reason = format!("it takes connections, and says nothing for {:?}", self.plan.timeout);
            self.refusal = Some(LoadError::Foreign { server: self.plan.authority.clone(), reason });
        }
        if self.watch.is_stopped() {
            self.end_ns = self.end_ns.min(now_ns);
        }
        self.publish();
    }

    /// Publishes the progress.
    fn publish(&mut self) {
        self.watch.add(&self.published, &self.tally.counts);
        self.published = self.tally.counts.clone();
    }

    /// Applies a function to every link, and handles the resulting event.
    fn each_link(
        &mut self,
        now_ns: u64,
        mut act: impl FnMut(&mut LoadLink, &mut dyn FnMut(CallOutcome)) -> LinkEvent,
    ) {
        let (plan, decisions) = (self.plan, self.service.mode.decisions());
        let Self { links, tally, trace, refusal, has_decided, .. } = self;
        for link in links {
            let event = act(link, &mut |outcome| {
                if !*has_decided {
                    match refusal::find(&outcome.result, plan) {
                        Some(error) => *refusal = refusal.take().or(Some(error)),
                        None => *has_decided = outcome.result.is_ok(),
                    }
                }
                if let Some(trace) = trace {
                    trace.write(&outcome, now_ns);
                }
                if outcome.call.counts {
                    tally.ended(outcome, decisions, now_ns);
                }
            });
            if let LinkEvent::Lost { reason, was_greeted: false } = event
                && !*has_decided
            {
                *refusal = Some(LoadError::Foreign { server: plan.authority.clone(), reason });
            }
        }
    }
}

/// Share number `index` of `whole`, split into `parts`.
pub(super) const fn part(whole: u64, index: usize, parts: usize) -> u64 {
    let parts = parts as u64;
    whole / parts + ((index as u64) < whole % parts) as u64
}

fn ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
