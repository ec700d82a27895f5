//! What has become of every item, and why it was delivered more than once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use weir_proto::v1::{DeliveryCause, StatsResponse, TakenItem};

/// How a worker ends a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Acked,
    Nacked,
    /// As if the worker hung.
    Forgotten,
}

/// A line of Weir about an item that is delivered again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LogLine {
    item: String,
    deliveries: u32,
    by_nack: bool,
}

impl LogLine {
    pub(super) const WORDS: &str = "item redelivered";

    pub(super) fn read(line: &str) -> Option<Self> {
        let json: serde_json::Value = serde_json::from_str(line).ok()?;
        let fields = json.get("fields").unwrap_or(&json);
        Some(Self {
            item: fields["item"].as_str()?.to_owned(),
            deliveries: u32::try_from(fields["deliveries"].as_u64()?).ok()?,
            by_nack: fields["cause"].as_str()?.contains("given back"),
        })
    }
}

#[derive(Default)]
pub(super) struct Account(Mutex<Notes>);

#[derive(Default)]
struct Notes {
    accepted: HashSet<String>,
    /// Deliveries that workers have got, by item and number.
    deliveries: HashMap<(String, u32), Delivery>,
    /// Payloads that somebody tried to ack.
    acked: HashSet<String>,
    dead: HashSet<String>,
    /// The most items that calls without an answer may have taken.
    unknown: u64,
    kills: HashMap<&'static str, u64>,
}

#[derive(Debug)]
struct Delivery {
    cause: DeliveryCause,
    /// How it ended, if its worker lived long enough.
    ending: Option<Ending>,
}

/// A call for items. If it ends without an answer, or its worker does, it may have taken as many as it asked for.
pub(super) struct Asked {
    account: Arc<Account>,
    items: u64,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.account.0.lock().unwrap().unknown += self.items;
    }
}

impl Asked {
    pub(super) fn got(mut self, items: &[TakenItem]) {
        let mut notes = self.account.0.lock().unwrap();
        for item in items {
            let known = Delivery { cause: item.cause(), ending: None };
            let twice = notes.deliveries.insert((item.id.clone(), item.deliveries), known);
            assert!(twice.is_none(), "two workers have the same delivery: {item:?}");
        }
        drop(notes);
        self.items = 0;
    }
}

impl Account {
    pub(super) fn accepted(&self, payload: String) {
        self.0.lock().unwrap().accepted.insert(payload);
    }

    pub(super) fn note(&self, kill: &'static str) {
        *self.0.lock().unwrap().kills.entry(kill).or_default() += 1;
    }

    pub(super) fn asks_for(self: &Arc<Self>, items: u64) -> Asked {
        Asked { account: Arc::clone(self), items }
    }

    pub(super) fn ends(&self, item: &TakenItem, payload: &str, ending: Ending) {
        let mut notes = self.0.lock().unwrap();
        if ending == Ending::Acked {
            notes.acked.insert(payload.to_owned());
        }
        if let Some(delivery) = notes.deliveries.get_mut(&(item.id.clone(), item.deliveries)) {
            delivery.ending = Some(ending);
        }
    }

    pub(super) fn take_dead_letters(&self, payloads: Vec<String>) {
        self.0.lock().unwrap().dead.extend(payloads);
    }

    pub(super) fn check(&self, stats: &StatsResponse, log: &[LogLine]) {
        let notes = self.0.lock().unwrap();
        let lost: Vec<_> = notes
            .accepted
            .iter()
            .filter(|payload| !notes.acked.contains(*payload) && !notes.dead.contains(*payload))
            .collect();
        assert!(
            lost.is_empty(),
            "{} of {} accepted items are lost: {lost:?}",
            lost.len(),
            notes.accepted.len()
        );
        // Items that were put twice, because the first answer came too late, are accepted twice.
        assert!(stats.accepted >= notes.accepted.len() as u64, "{stats:?}");
        assert_eq!(stats.accepted, stats.acked + stats.dead_lettered, "{stats:?}");
        assert_eq!(stats.accepted, stats.first_deliveries, "each item was delivered: {stats:?}");
        assert_eq!(stats.dead_lettered, notes.dead.len() as u64, "{stats:?}");

        let again = stats.redelivered_nack + stats.redelivered_visibility;
        let total = stats.first_deliveries + again;
        let seen = notes.deliveries.len() as u64;
        assert!(seen <= total, "workers have got {seen} deliveries, and the queue has counted {total}");
        let unseen = total - seen;
        assert!(unseen <= notes.unknown, "{unseen} deliveries reached nobody; {} may have", notes.unknown);
        let logged: HashSet<&LogLine> = log.iter().collect();
        let mut not_logged = 0;
        for ((item, number), delivery) in &notes.deliveries {
            if *number == 1 {
                assert_eq!(delivery.cause, DeliveryCause::First);
                continue;
            }
            notes.explain(item, *number, delivery.cause);
            let by_nack = delivery.cause == DeliveryCause::Nack;
            let line = LogLine { item: item.clone(), deliveries: *number, by_nack };
            not_logged += u64::from(!logged.contains(&line));
        }
        let of_weir = notes.kills.get("a node of Weir was killed").copied().unwrap_or(0);
        println!(
            "{} accepted, {} acked, {} dead; {again} deliveries above the first ({} after a nack), {unseen} reached \
             nobody; {not_logged} lines were lost with {of_weir} killed nodes",
            stats.accepted, stats.acked, stats.dead_lettered, stats.redelivered_nack
        );
        // A node that is killed loses the lines that its log had not written yet.
        assert!(not_logged == 0 || of_weir > 0, "{not_logged} deliveries above the first are in no log");
        assert!(log.len() as u64 <= again, "{} lines for {again} deliveries", log.len());
    }
}

impl Notes {
    /// What ended the delivery before must be the cause.
    fn explain(&self, item: &str, number: u32, cause: DeliveryCause) {
        let before = self.deliveries.get(&(item.to_owned(), number - 1));
        let explained = match (cause, before) {
            (DeliveryCause::Unspecified | DeliveryCause::First, _) => false,
            (DeliveryCause::Nack, before) => before.is_some_and(|it| it.ending == Some(Ending::Nacked)),
            // It reached nobody; how many may have done so was checked.
            (DeliveryCause::Visibility, None) => true,
            // Its worker was killed (no ending), hung, or its last call was lost with a node or with Redis.
            (DeliveryCause::Visibility, Some(before)) => match before.ending {
                None | Some(Ending::Forgotten) => true,
                Some(Ending::Acked | Ending::Nacked) => !self.kills.is_empty(),
            },
        };
        assert!(explained, "delivery {number} of {item} has no cause: {cause:?} after {before:?}");
    }
}
