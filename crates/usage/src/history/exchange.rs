//! Exchange of usage between nodes, through Redis.
//!
//! Each node writes its own counts under its name and incarnation: the sum of each slot so far. So writes can be
//! repeated, and readers add up all nodes. All keys expire.
//!
//! ```text
//!   nodes                      sorted set   NODE:INCARNATION, by when it wrote last
//!   names:NODE:INCARNATION     hash         number of a series -> ["strategy", "pattern", "outcome"], of units
//!                              with the name of the cost after them
//!   s|m|h:NODE:INCARNATION:N   hash         slot -> number:calls:cost ...   of a minute, an hour, a day
//!   c|d:NODE:INCARNATION:N     sorted set   [error, "strategy", allowed, "consumer"] by calls, of 10 s, a minute
//! ```

mod former;
mod text;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use weir_units::Micros;

use self::former::FormerSums;
use super::collect::{Collector, second};
use super::consumers::{ConsumersAsk, ConsumersWindow, PART};
use super::query::UsageSums;
use super::resolutions::Resolution;
use super::series::SeriesName;
use crate::consumers::ConsumerSummary;
use crate::store::{UsageCommand, UsageLink};

/// Key of the set of nodes.
pub(super) const NODES: &str = "nodes";

/// Most known processes. Those whose last write is oldest are dropped first.
pub(super) const MAX_NODES: usize = 1_000;

/// Time for which a process is known after its last write: the TTL of its values.
pub(super) const NODE_SECONDS: u64 = 31 * 86_400;

/// Most slots per write; more are left for the next second.
const MAX_SLOTS: usize = 300;

/// Most ended processes that one question reads. The others are read by the next ones, or meanwhile.
const READ_AT_ONCE: usize = 32;

/// Most ended processes that are merged in a second, for the next questions.
const MERGED_AT_ONCE: usize = 4;

/// Tolerated difference between nodes' clocks when the values for a question are selected.
pub(super) const SLACK: u64 = 120;

/// One node's side of the exchange.
pub(super) struct Exchange {
    link: UsageLink,
    /// `NODE:INCARNATION`.
    own: String,
    /// Number of series whose names were written.
    named: usize,
    /// Reason why the last write failed.
    failed: Option<String>,
    /// Sums of processes that have ended.
    former: FormerSums,
    /// Processes that the last question left out, and its resolution.
    left_out: Vec<(String, Resolution)>,
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
    /// The second of its last write.
    last: u64,
}

impl Exchange {
    /// The exchange of a process that began at `started`.
    pub(super) fn new(link: UsageLink, node: &str, started: Micros) -> Self {
        Self {
            link,
            own: member(node, started),
            named: 0,
            failed: None,
            former: FormerSums::default(),
            left_out: Vec::new(),
            unread: None,
        }
    }

    /// `NODE:INCARNATION` of the process.
    pub(super) fn member(&self) -> &str {
        &self.own
    }

    /// The connection of the exchange.
    pub(super) fn link(&mut self) -> &mut UsageLink {
        &mut self.link
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
                    seconds: part.ttl(),
                });
            }
        }
        match self.link.write(&commands).await {
            Ok(replies) => {
                let is_lost = self.named > 0 && replies.first() == Some(&0);
                self.named = if is_lost { 0 } else { collector.series.len() };
                if is_lost {
                    tracing::info!("Redis lost usage data; writing it again");
                    collector.history.all_changed();
                } else {
                    collector.history.written(&slots);
                }
                collector.consumers.sent(&consumers);
                if self.failed.take().is_some() {
                    tracing::info!("usage export to Redis recovered");
                }
            }
            Err(reason) => {
                collector.history.trim_changed();
                if self.failed.replace(reason.clone()).is_none() {
                    tracing::warn!(
                        reason,
                        what_to_do = "docs/usage.md lists the rights that Weir needs; `usage.shared: false` turns this off",
                        "cannot write usage to Redis; keeping it for five minutes"
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
            commands.push(UsageCommand::Hash { key, fields, seconds: ttl(resolution) });
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
        let (mut nodes, mut left) = (BTreeSet::new(), 0);
        let added = async {
            // Those that wrote last come first: a question that leaves some out leaves out the oldest.
            let mut others = self.others(from, to, now).await?;
            others.sort_by_key(|node| std::cmp::Reverse(node.last));
            let mut read = 0;
            self.left_out.clear();
            for node in others {
                nodes.insert(node.name);
                if self.former.has(&node.member, resolution) {
                    continue;
                }
                if !self.former.may_merge(&node.member, second(now)) {
                    self.add_process(&node.member, sums).await?;
                } else if read < READ_AT_ONCE {
                    read += 1;
                    self.merge(&node.member, resolution, now).await?;
                } else {
                    left += 1;
                    self.left_out.push((node.member, resolution));
                }
            }
            self.former.add_to(sums);
            Ok(())
        };
        let failed = added.await.err();
        self.unread = failed.clone().map(|why| (second(now), why));
        let waiting = (left > 0).then(|| {
            format!("{left} processes that have ended are still to be read; a question reads {READ_AT_ONCE}, so ask again")
        });
        OfOthers { found: (), nodes: nodes.into_iter().collect(), incomplete: failed.or(waiting) }
    }

    /// Merges some of the processes that the last question left out.
    pub(super) async fn merge_left_out(&mut self, now: Micros) {
        for _ in 0..MERGED_AT_ONCE {
            let Some((member, resolution)) = self.left_out.pop() else { return };
            if self.former.has(&member, resolution) || !self.former.may_merge(&member, second(now)) {
                continue;
            }
            if self.merge(&member, resolution, now).await.is_err() {
                // The next question says so.
                self.left_out.clear();
            }
        }
    }

    /// Adds the counts of a process to `sums`.
    async fn add_process(&mut self, member: &str, sums: &mut UsageSums) -> Result<(), String> {
        let (from, to, resolution) = (sums.plan.from, sums.plan.to, sums.plan.resolution);
        self.each_count(member, resolution, (from, to), |_, name, slot, calls, cost| {
            if !sums.is_too_large() {
                sums.add(name, slot.saturating_mul(resolution.seconds()), calls, cost);
            }
        })
        .await
    }

    /// Merges all that an ended process has counted.
    async fn merge(&mut self, member: &str, resolution: Resolution, now: Micros) -> Result<(), String> {
        let to = second(now) + 1;
        let from = to.saturating_sub(resolution.keep() * resolution.seconds());
        self.each_count(member, resolution, (from, to), |former, name, slot, calls, cost| {
            former.add(resolution, slot, name, calls, cost);
        })
        .await?;
        self.former.merged(member, resolution);
        Ok(())
    }

    /// Calls `each` with the name, slot, calls and cost of each count of a process. Nothing is counted if a key cannot be read.
    async fn each_count(
        &mut self,
        member: &str,
        resolution: Resolution,
        (from, to): (u64, u64),
        mut each: impl FnMut(&mut FormerSums, &SeriesName, u64, u64, u64),
    ) -> Result<(), String> {
        let width = resolution.seconds() * per_chunk(resolution);
        let chunks = from / width..to.div_ceil(width);
        // Bounds the keys of a question about a long time by the retention.
        let first =
            chunks.start.max(chunks.end.saturating_sub(resolution.keep() / per_chunk(resolution) + 2));
        let mut keys = vec![format!("names:{member}")];
        keys.extend((first..chunks.end).map(|chunk| chunk_key(resolution, member, chunk)));
        let mut hashes = self.link.hashes(&keys).await?.into_iter();
        let names: HashMap<String, SeriesName> = hashes.next().map(text::names).unwrap_or_default();
        for (slot, entries) in hashes.flatten() {
            let Ok(slot) = slot.parse::<u64>() else { continue };
            text::each_entry(&entries, |id, calls, cost| {
                if let Some(name) = names.get(id) {
                    each(&mut self.former, name, slot, calls, cost);
                }
            });
        }
        Ok(())
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
            for node in self.others(now.saturating_sub(3_660), now + 1, Micros::from_secs(now)).await? {
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

    /// Reads all other processes that wrote in a span of time.
    async fn others(&mut self, from: u64, to: u64, now: Micros) -> Result<Vec<OtherNode>, String> {
        let members: Vec<(String, u64)> =
            self.link.sets(&[NODES.to_owned()]).await?.into_iter().flatten().take(MAX_NODES + 1).collect();
        self.former.see(members.iter().map(|(member, last)| (member.as_str(), *last)), second(now));
        let other = |(member, last): (String, u64)| {
            let (name, incarnation) = member.split_once(':')?;
            let began = u64::from_str_radix(incarnation.split('-').next()?, 16).ok()? / 1_000_000;
            let is_of_then = last.saturating_add(SLACK) >= from && began < to.saturating_add(SLACK);
            let name = name.to_owned();
            (member != self.own && is_of_then).then_some(OtherNode { member, name, last })
        };
        Ok(members.into_iter().filter_map(other).take(MAX_NODES).collect())
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

/// TTL of a hash after its last write: the retention of its first slot, and the time of the slots after it.
const fn ttl(resolution: Resolution) -> u64 {
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
