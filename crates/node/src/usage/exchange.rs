//! Exchange of usage between nodes, through Redis.
//!
//! Each node writes its own counts under its name and incarnation: the sum of each slot so far. So writes can be
//! repeated, and readers add up all nodes. All keys expire.
//!
//! ```text
//!   nodes                      sorted set   NODE:INCARNATION, by when it wrote last
//!   names:NODE:INCARNATION     hash         number of a series -> ["strategy", "pattern", "outcome"]
//!   s|m|h:NODE:INCARNATION:N   hash         slot -> number:calls:cost ...   of a minute, an hour, a day
//!   c|d:NODE:INCARNATION:N     sorted set   [error, "strategy", allowed, "consumer"] by calls, of 10 s, a minute
//! ```

mod text;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use weir_store::redis::{UsageCommand, UsageLink};
use weir_units::Micros;

use super::collect::{Collector, second};
use super::consumers::{ConsumersAsk, ConsumersWindow, PART};
use super::history::Resolution;
use super::query::UsageSums;
use super::series::SeriesName;
use crate::telemetry::ConsumerSummary;

/// Key of the set of nodes.
const NODES: &str = "nodes";

/// Most known processes. Those whose last write is oldest are dropped first.
const MAX_NODES: usize = 1_000;

/// How long a process is known after its last write: as long as its values.
const NODE_SECONDS: u64 = 31 * 86_400;

/// Most slots per write; more are left for the next second.
const MAX_SLOTS: usize = 300;

/// Tolerated difference between nodes' clocks when the values for a question are selected.
const SLACK: u64 = 120;

/// One node's side of the exchange.
pub(super) struct Exchange {
    link: UsageLink,
    /// `NODE:INCARNATION`.
    own: String,
    /// Number of series whose names were written.
    named: usize,
    /// Why the last write failed, if it did.
    failed: Option<String>,
    /// Time in seconds and reason of the last failed read: questions do not wait for another attempt at once.
    unread: Option<(u64, String)>,
}

/// Answers of other nodes, and the reason if some are missing.
pub(super) struct OfOthers<T> {
    pub(super) found: T,
    pub(super) nodes: Vec<String>,
    pub(super) incomplete: Option<String>,
}

/// A process that has written.
struct OtherNode {
    /// `NODE:INCARNATION`.
    member: String,
    name: String,
}

impl Exchange {
    /// The exchange of a process that began at `started`.
    pub(super) fn new(link: UsageLink, node: &str, started: Micros) -> Self {
        Self { link, own: member(node, started), named: 0, failed: None, unread: None }
    }

    /// Starts over at `now`, as another process of the node would: what was written stays true.
    pub(super) fn begin_anew(&mut self, node: &str, now: Micros) {
        (self.own, self.named) = (member(node, now), 0);
    }

    /// Writes the changes since the last successful write.
    pub(super) async fn write(&mut self, collector: &mut Collector, now: Micros) {
        let slots = collector.history.changed(MAX_SLOTS);
        let consumers = collector.consumers.unsent(second(now));
        if slots.is_empty() && consumers.is_empty() {
            return;
        }
        let mut commands = self.commands(collector, &slots, now);
        for part in &consumers {
            if let Some(found) = collector.consumers.found_in(*part) {
                let (kind, slot) = part.key();
                let members = text::members(found);
                commands.push(UsageCommand::Set {
                    key: format!("{kind}:{}:{slot}", self.own),
                    members,
                    seconds: part.lasts(),
                });
            }
        }
        match self.link.write(&commands).await {
            Ok(replies) => {
                let is_lost = self.named > 0 && replies.first() == Some(&0);
                self.named = if is_lost { 0 } else { collector.series.len() };
                if is_lost {
                    tracing::info!("Redis has lost what was written of usage; it is written once more");
                    collector.history.all_changed();
                } else {
                    collector.history.written(&slots);
                }
                collector.consumers.sent(&consumers);
                if self.failed.take().is_some() {
                    tracing::info!("usage is written to Redis again");
                }
            }
            Err(reason) => {
                collector.history.trim_changed();
                if self.failed.replace(reason.clone()).is_none() {
                    tracing::warn!(
                        reason,
                        what_to_do = "docs/usage.md lists the rights that Weir needs; `usage.shared: false` turns this off",
                        "usage is not written to Redis; it is kept for five minutes"
                    );
                }
            }
        }
    }

    fn commands(&self, collector: &Collector, slots: &[(Resolution, u64)], now: Micros) -> Vec<UsageCommand> {
        let names = format!("names:{}", self.own);
        let mut commands = vec![UsageCommand::Keep { key: names.clone(), seconds: NODE_SECONDS }];
        let new: Vec<_> = (self.named..collector.series.len())
            .filter_map(|id| Some((id.to_string(), text::name(collector.series.name_at(id)?))))
            .collect();
        if !new.is_empty() {
            commands.push(UsageCommand::Hash { key: names, fields: new, seconds: NODE_SECONDS });
        }
        let mut hashes = HashMap::<(Resolution, u64), Vec<(String, String)>>::new();
        for &(resolution, slot) in slots {
            let entries = collector.history.slot(resolution, slot);
            let chunk = slot / per_chunk(resolution);
            hashes.entry((resolution, chunk)).or_default().push((slot.to_string(), text::entries(&entries)));
        }
        for ((resolution, chunk), fields) in hashes {
            let key = chunk_key(resolution, &self.own, chunk);
            commands.push(UsageCommand::Hash { key, fields, seconds: lasts(resolution) });
        }
        commands.push(UsageCommand::Set {
            key: NODES.to_owned(),
            members: vec![(second(now), self.own.clone())],
            seconds: NODE_SECONDS,
        });
        let least = second(now).saturating_sub(NODE_SECONDS);
        commands.push(UsageCommand::Trim { key: NODES.to_owned(), least, most: MAX_NODES });
        commands
    }

    /// Adds the counts of all other processes to `sums`.
    pub(super) async fn add_others(&mut self, sums: &mut UsageSums, now: Micros) -> OfOthers<()> {
        if let Some(incomplete) = self.failed_just_now(now) {
            return OfOthers { found: (), nodes: Vec::new(), incomplete: Some(incomplete) };
        }
        let (from, to, resolution) = (sums.plan.from, sums.plan.to, sums.plan.resolution);
        let mut nodes = BTreeSet::new();
        let added = async {
            let width = resolution.seconds() * per_chunk(resolution);
            for node in self.others(from, to).await? {
                nodes.insert(node.name);
                let chunks = from / width..to.div_ceil(width);
                // Bounds the keys of a question about a long time by the retention.
                let first = chunks
                    .start
                    .max(chunks.end.saturating_sub(resolution.keep() / per_chunk(resolution) + 2));
                let mut keys = vec![format!("names:{}", node.member)];
                keys.extend((first..chunks.end).map(|chunk| chunk_key(resolution, &node.member, chunk)));
                let mut hashes = self.link.hashes(&keys).await?.into_iter();
                let names: HashMap<String, SeriesName> = hashes.next().map(text::names).unwrap_or_default();
                for (slot, entries) in hashes.flatten() {
                    let Ok(slot) = slot.parse::<u64>() else { continue };
                    let begins = slot.saturating_mul(resolution.seconds());
                    text::each_entry(&entries, |id, calls, cost| {
                        if let Some(name) = names.get(id).filter(|_| !sums.is_too_large()) {
                            sums.add(name, begins, calls, cost);
                        }
                    });
                }
            }
            Ok(())
        };
        let incomplete = added.await.err();
        self.unread = incomplete.clone().map(|why| (second(now), why));
        OfOthers { found: (), nodes: nodes.into_iter().collect(), incomplete }
    }

    /// Summaries of consumers by all other processes.
    pub(super) async fn consumers(
        &mut self,
        ask: &ConsumersAsk,
        now: Micros,
    ) -> OfOthers<Vec<ConsumerSummary<Arc<str>>>> {
        let (mut found, mut nodes) = (Vec::new(), BTreeSet::new());
        if let Some(incomplete) = self.failed_just_now(now) {
            return OfOthers { found, nodes: Vec::new(), incomplete: Some(incomplete) };
        }
        let now = second(now);
        let read = async {
            let (first_part, minutes) = match ask.window {
                ConsumersWindow::Minute => ((now / PART).saturating_sub(6), 0..0),
                // Whole minutes, and the parts that followed them.
                ConsumersWindow::Hour => (now / 60 * 60 / PART, (now / 60).saturating_sub(60)..now / 60),
            };
            for node in self.others(now.saturating_sub(3_660), now + 1).await? {
                nodes.insert(node.name);
                let parts = (first_part..=now / PART).map(|part| format!("c:{}:{part}", node.member));
                let minutes = minutes.clone().map(|minute| format!("d:{}:{minute}", node.member));
                let keys: Vec<String> = parts.chain(minutes).collect();
                let parts: Vec<_> =
                    self.link.sets(&keys).await?.into_iter().filter_map(text::summary).collect();
                // One of each node, so that many nodes take little memory.
                found.push(ConsumerSummary::merged(&parts));
            }
            Ok(())
        };
        let incomplete = read.await.err();
        self.unread = incomplete.clone().map(|why| (now, why));
        OfOthers { found, nodes: nodes.into_iter().collect(), incomplete }
    }

    /// The reason if a read failed within this second or the last.
    fn failed_just_now(&self, now: Micros) -> Option<String> {
        let failed = self.unread.as_ref().filter(|(at, _)| at.abs_diff(second(now)) <= 1);
        failed.map(|(_, why)| why.clone())
    }

    /// All other processes that wrote in a span of time.
    async fn others(&mut self, from: u64, to: u64) -> Result<Vec<OtherNode>, String> {
        let members = self.link.sets(&[NODES.to_owned()]).await?.into_iter().flatten();
        let other = |(member, last): (String, u64)| {
            let (name, incarnation) = member.split_once(':')?;
            let began = u64::from_str_radix(incarnation.split('-').next()?, 16).ok()? / 1_000_000;
            let is_of_then = last.saturating_add(SLACK) >= from && began < to.saturating_add(SLACK);
            let name = name.to_owned();
            (member != self.own && is_of_then).then_some(OtherNode { member, name })
        };
        Ok(members.filter_map(other).take(MAX_NODES).collect())
    }
}

/// Slots per hash: a minute of seconds, an hour of minutes, a day of hours.
const fn per_chunk(resolution: Resolution) -> u64 {
    match resolution {
        Resolution::Second | Resolution::Minute => 60,
        Resolution::Hour => 24,
    }
}

fn chunk_key(resolution: Resolution, member: &str, chunk: u64) -> String {
    let kind = match resolution {
        Resolution::Second => 's',
        Resolution::Minute => 'm',
        Resolution::Hour => 'h',
    };
    format!("{kind}:{member}:{chunk}")
}

/// Lifetime of a hash after its last write: the retention of its first slot, and the time of the slots after it.
const fn lasts(resolution: Resolution) -> u64 {
    (resolution.keep() + per_chunk(resolution)) * resolution.seconds()
}

/// `NODE:INCARNATION`.
fn member(node: &str, started: Micros) -> String {
    format!("{node}:{}", incarnation(started))
}

/// Name of a process among those of its node: no two begin in the same microsecond and with the same number.
pub(super) fn incarnation(started: Micros) -> String {
    format!("{:x}-{:x}", started.0, std::process::id())
}
