//! Storage of usage data that nodes share: hashes, sorted sets and time series under one hash tag.
//!
//! No decision depends on it. Writes are idempotent, so they can be retried after a lost reply.

mod needs;

use std::collections::BTreeSet;

use weir_core::key::usage_slot;
use weir_store::scripts::{Commands, LinkReply, ScriptClient, SlotLink};

pub(crate) use self::needs::{TIME_SERIES, USAGE};

/// A write command. Key names exclude the hash tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UsageCommand {
    /// Sets fields of a hash, and its TTL. The reply is that of EXPIRE.
    Hash {
        /// The key.
        key: String,
        /// The fields and their values.
        fields: Vec<(String, String)>,
        /// TTL of the key, in seconds.
        seconds: u64,
    },
    /// Adds members to a sorted set, and sets its TTL.
    Set {
        /// The key.
        key: String,
        /// The members and their scores.
        members: Vec<(u64, String)>,
        /// TTL of the key, in seconds.
        seconds: u64,
    },
    /// Renews the TTL of a hash. The reply is 1 if the hash exists.
    Keep {
        /// The key.
        key: String,
        /// TTL of the key, in seconds.
        seconds: u64,
    },
    /// Removes members with scores below `least`, and those with the lowest scores beyond `most`.
    Trim {
        /// The key.
        key: String,
        /// Minimum score to keep.
        least: u64,
        /// Maximum number of members to keep.
        most: usize,
    },
}

/// A time series, with a second one that sums it by the minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageTimeSeries {
    /// The key, without the hash tag.
    pub(crate) key: String,
    /// The label `data`; that of the sums by the minute has `_per_minute` after it.
    pub(crate) data: &'static str,
    /// Label names and values; no value is empty.
    pub(crate) labels: Vec<(&'static str, String)>,
}

/// A value of a time series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageSample<'a> {
    /// The series.
    pub(crate) series: &'a UsageTimeSeries,
    /// Time of the sample in milliseconds. An existing value at this time is replaced.
    pub(crate) at_ms: u64,
    /// The value.
    pub(crate) value: u64,
}

/// Retention of values per second and per minute, in milliseconds.
const SECONDS_KEPT: u64 = 24 * 3_600_000;
const MINUTES_KEPT: u64 = 30 * SECONDS_KEPT;

/// A connection to the node that owns the slot of usage data.
pub(crate) struct UsageLink(Box<dyn SlotLink>);

impl UsageLink {
    /// Creates a link, which connects on first use.
    #[must_use]
    pub(crate) fn open(scripts: &ScriptClient) -> Self {
        Self(scripts.link("usage", usage_slot()))
    }

    /// Runs commands in order. Returns the last reply of each as a number, or the first error.
    pub(crate) async fn write(&mut self, commands: &[UsageCommand]) -> Result<Vec<i64>, String> {
        let (mut sent, mut last) = (Commands::default(), Vec::new());
        for command in commands {
            self.add(&mut sent, command);
            last.push(sent.len() - 1);
        }
        let replies = self.exchange(&sent).await?;
        let number = |place: usize| match replies.get(place) {
            Some(LinkReply::Number(number)) => *number,
            _ => 0,
        };
        Ok(last.into_iter().map(number).collect())
    }

    /// Returns the fields and values of several hashes.
    pub(crate) async fn hashes(&mut self, keys: &[String]) -> Result<Vec<Vec<(String, String)>>, String> {
        let mut commands = Commands::default();
        for key in keys {
            commands.add("HGETALL").arg(self.key(key));
        }
        Ok(self.exchange(&commands).await?.into_iter().map(pairs).collect())
    }

    /// Returns the members and scores of several sorted sets.
    pub(crate) async fn sets(&mut self, keys: &[String]) -> Result<Vec<Vec<(String, u64)>>, String> {
        let mut commands = Commands::default();
        for key in keys {
            commands.add("ZRANGE").arg(self.key(key)).number(0).number(-1).arg("WITHSCORES");
        }
        let number = |(member, score): (String, String)| {
            let score = score.parse::<f64>().ok().filter(|score| *score >= 0.0)?;
            Some((member, score as u64))
        };
        let members = |reply| pairs(reply).into_iter().filter_map(number).collect();
        Ok(self.exchange(&commands).await?.into_iter().map(members).collect())
    }

    /// Creates time series and their sums by the minute, unless they exist.
    pub(crate) async fn make_series(&mut self, series: &[UsageTimeSeries]) -> Result<(), String> {
        let mut commands = Commands::default();
        for UsageTimeSeries { key, data, labels } in series {
            let [seconds, minutes] = self.both_keys(key);
            let per_minute = format!("{data}_per_minute");
            for (key, kept, data) in [(&seconds, SECONDS_KEPT, *data), (&minutes, MINUTES_KEPT, &per_minute)]
            {
                let make = commands.add("TS.CREATE").arg(key).arg("RETENTION").number(kept);
                make.arg("DUPLICATE_POLICY").arg("LAST").arg("LABELS").arg("data").arg(data);
                labels.iter().for_each(|(name, value)| {
                    make.arg(name).arg(value);
                });
            }
            let rule = commands.add("TS.CREATERULE").arg(&seconds).arg(&minutes);
            rule.arg("AGGREGATION").arg("sum").number(60_000);
        }
        let is_there =
            |error: &str| error.contains("key already exists") || error.contains("already has a src rule");
        self.0.send(&commands, is_there).await.map(|_| ())
    }

    /// Adds values to time series. A series expires when its last value has: nodes and their names come and go.
    pub(crate) async fn add_samples(&mut self, samples: &[UsageSample<'_>]) -> Result<(), String> {
        let mut commands = Commands::default();
        let mut written = BTreeSet::new();
        for UsageSample { series: UsageTimeSeries { key, data, labels }, at_ms, value } in samples {
            let add = commands.add("TS.ADD").arg(self.key(key)).number(*at_ms).number(*value);
            add.arg("RETENTION").number(SECONDS_KEPT).arg("ON_DUPLICATE").arg("LAST");
            add.arg("LABELS").arg("data").arg(data);
            labels.iter().for_each(|(name, value)| {
                add.arg(name).arg(value);
            });
            written.insert(key);
        }
        for key in written {
            let [seconds, minutes] = self.both_keys(key);
            commands.add("EXPIRE").arg(seconds).number(SECONDS_KEPT / 1_000);
            commands.add("EXPIRE").arg(minutes).number(MINUTES_KEPT / 1_000);
        }
        self.exchange(&commands).await.map(|_| ())
    }

    /// Keys of a time series and of its sums by the minute.
    fn both_keys(&self, key: &str) -> [String; 2] {
        [self.key(key), self.key(&format!("{key}:minute"))]
    }

    fn key(&self, name: &str) -> String {
        self.0.namespace().usage_key(name)
    }

    fn add(&self, commands: &mut Commands, command: &UsageCommand) {
        match command {
            UsageCommand::Hash { key, fields, seconds } => {
                let put = commands.add("HSET").arg(self.key(key));
                fields.iter().for_each(|(field, value)| {
                    put.arg(field).arg(value);
                });
                self.expire(commands, key, *seconds);
            }
            UsageCommand::Set { key, members, seconds } => {
                let put = commands.add("ZADD").arg(self.key(key));
                members.iter().for_each(|(score, member)| {
                    put.number(*score).arg(member);
                });
                self.expire(commands, key, *seconds);
            }
            UsageCommand::Keep { key, seconds } => self.expire(commands, key, *seconds),
            UsageCommand::Trim { key, least, most } => {
                let key = self.key(key);
                commands.add("ZREMRANGEBYSCORE").arg(&key).arg("-inf").arg(format!("({least}"));
                let last = i64::try_from(*most).map_or(i64::MIN, |most| -1 - most);
                commands.add("ZREMRANGEBYRANK").arg(&key).number(0).number(last);
            }
        }
    }

    fn expire(&self, commands: &mut Commands, key: &str, seconds: u64) {
        commands.add("EXPIRE").arg(self.key(key)).number(seconds);
    }

    /// Sends commands to the owner of the slot. An error of one command is the error of all.
    async fn exchange(&mut self, commands: &Commands) -> Result<Vec<LinkReply>, String> {
        self.0.send(commands, |_| false).await
    }
}

/// Returns the texts of a list in pairs; any other reply has none.
fn pairs(reply: LinkReply) -> Vec<(String, String)> {
    let text = |reply: LinkReply| match reply {
        LinkReply::Bytes(bytes) => String::from_utf8(bytes).unwrap_or_default(),
        LinkReply::Double(number) => number.to_string(),
        _ => String::new(),
    };
    let LinkReply::List(replies) = reply else { return Vec::new() };
    let mut texts = replies.into_iter().map(text);
    let mut pairs = Vec::new();
    while let (Some(first), Some(second)) = (texts.next(), texts.next()) {
        pairs.push((first, second));
    }
    pairs
}
