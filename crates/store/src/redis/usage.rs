//! Storage of usage data that nodes share: hashes, sorted sets and time series under one hash tag.
//!
//! No decision depends on it. Writes are idempotent, so they can be retried after a lost reply.

mod commands;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redis::{Pipeline, Value};
use weir_core::key::usage_slot;

use super::connect::{Connection, RedisPeer, connect};
use super::context::LinkContext;
use super::fault::as_written;
use super::script_spec::ScriptSpec;
use super::topology::Address;

/// The commands of usage that nodes share.
pub static USAGE: ScriptSpec = commands::USAGE;

/// The commands of time series, tried with arguments that the module refuses.
pub static TIME_SERIES: ScriptSpec = commands::TIME_SERIES;

/// Timeout of an exchange. It is longer than that of a decision, because a reply may be large.
const WITHIN: Duration = Duration::from_secs(2);

/// A write command. Key names exclude the hash tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageCommand {
    /// Sets fields of a hash, and its TTL. The reply is that of EXPIRE.
    Hash {
        /// The key.
        key: String,
        /// The fields and their values.
        fields: Vec<(String, String)>,
        /// Its TTL.
        seconds: u64,
    },
    /// Adds members to a sorted set, and sets its TTL.
    Set {
        /// The key.
        key: String,
        /// The members and their scores.
        members: Vec<(u64, String)>,
        /// Its TTL.
        seconds: u64,
    },
    /// Renews the TTL of a hash. The reply is 1 if the hash exists.
    Keep {
        /// The key.
        key: String,
        /// Its TTL.
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
pub struct UsageTimeSeries {
    /// The key, without the hash tag.
    pub key: String,
    /// The label `data`; that of the sums by the minute has `_per_minute` after it.
    pub data: &'static str,
    /// Label names and values; no value is empty.
    pub labels: Vec<(&'static str, String)>,
}

/// A value of a time series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageSample<'a> {
    /// The series.
    pub series: &'a UsageTimeSeries,
    /// Its time in milliseconds. An existing value at that time is replaced.
    pub at_ms: u64,
    /// The value.
    pub value: u64,
}

/// Retention of values per second and per minute, in milliseconds.
const SECONDS_KEPT: u64 = 24 * 3_600_000;
const MINUTES_KEPT: u64 = 30 * SECONDS_KEPT;

/// A connection to the node that owns the slot of usage data.
pub struct UsageLink {
    context: Arc<LinkContext>,
    connection: Option<(Address, Connection)>,
}

impl UsageLink {
    pub(super) fn new(context: Arc<LinkContext>) -> Self {
        Self { context, connection: None }
    }

    /// Runs commands in order. Returns the last reply of each as a number, or the first error.
    pub async fn write(&mut self, commands: &[UsageCommand]) -> Result<Vec<i64>, String> {
        let (mut pipeline, mut last) = (Pipeline::new(), Vec::new());
        for command in commands {
            self.add(&mut pipeline, command);
            last.push(pipeline.len() - 1);
        }
        let replies = self.exchange(&pipeline).await?;
        let number = |place: usize| match replies.get(place) {
            Some(Value::Int(number)) => *number,
            _ => 0,
        };
        Ok(last.into_iter().map(number).collect())
    }

    /// Returns the fields and values of several hashes.
    pub async fn hashes(&mut self, keys: &[String]) -> Result<Vec<Vec<(String, String)>>, String> {
        let mut pipeline = Pipeline::new();
        for key in keys {
            pipeline.cmd("HGETALL").arg(self.key(key));
        }
        Ok(self.exchange(&pipeline).await?.into_iter().map(pairs).collect())
    }

    /// Returns the members and scores of several sorted sets.
    pub async fn sets(&mut self, keys: &[String]) -> Result<Vec<Vec<(String, u64)>>, String> {
        let mut pipeline = Pipeline::new();
        for key in keys {
            pipeline.cmd("ZRANGE").arg(self.key(key)).arg(0).arg(-1).arg("WITHSCORES");
        }
        let number = |(member, score): (String, String)| {
            let score = score.parse::<f64>().ok().filter(|score| *score >= 0.0)?;
            Some((member, score as u64))
        };
        let members = |reply| pairs(reply).into_iter().filter_map(number).collect();
        Ok(self.exchange(&pipeline).await?.into_iter().map(members).collect())
    }

    /// Creates time series and their sums by the minute, unless they exist.
    pub async fn make_series(&mut self, series: &[UsageTimeSeries]) -> Result<(), String> {
        let mut pipeline = Pipeline::new();
        for UsageTimeSeries { key, data, labels } in series {
            let [seconds, minutes] = self.both_keys(key);
            let per_minute = format!("{data}_per_minute");
            for (key, kept, data) in [(&seconds, SECONDS_KEPT, *data), (&minutes, MINUTES_KEPT, &per_minute)]
            {
                let make = pipeline.cmd("TS.CREATE").arg(key).arg("RETENTION").arg(kept);
                make.arg("DUPLICATE_POLICY").arg("LAST").arg("LABELS").arg("data").arg(data);
                labels.iter().for_each(|(name, value)| {
                    make.arg(name).arg(value);
                });
            }
            let rule = pipeline.cmd("TS.CREATERULE").arg(&seconds).arg(&minutes);
            rule.arg("AGGREGATION").arg("sum").arg(60_000);
        }
        let is_there =
            |error: &str| error.contains("key already exists") || error.contains("already has a src rule");
        self.exchange_but(&pipeline, is_there).await.map(|_| ())
    }

    /// Adds values to time series. A series expires when its last value has: nodes and their names come and go.
    pub async fn add_samples(&mut self, samples: &[UsageSample<'_>]) -> Result<(), String> {
        let mut pipeline = Pipeline::new();
        let mut written = BTreeSet::new();
        for UsageSample { series: UsageTimeSeries { key, data, labels }, at_ms, value } in samples {
            let add = pipeline.cmd("TS.ADD").arg(self.key(key)).arg(at_ms).arg(value);
            add.arg("RETENTION").arg(SECONDS_KEPT).arg("ON_DUPLICATE").arg("LAST");
            add.arg("LABELS").arg("data").arg(data);
            labels.iter().for_each(|(name, value)| {
                add.arg(name).arg(value);
            });
            written.insert(key);
        }
        for key in written {
            let [seconds, minutes] = self.both_keys(key);
            pipeline.cmd("EXPIRE").arg(seconds).arg(SECONDS_KEPT / 1_000);
            pipeline.cmd("EXPIRE").arg(minutes).arg(MINUTES_KEPT / 1_000);
        }
        self.exchange(&pipeline).await.map(|_| ())
    }

    /// Keys of a time series and of its sums by the minute.
    fn both_keys(&self, key: &str) -> [String; 2] {
        [self.key(key), self.key(&format!("{key}:minute"))]
    }

    fn key(&self, name: &str) -> String {
        self.context.config.namespace.usage_key(name)
    }

    fn add(&self, pipeline: &mut Pipeline, command: &UsageCommand) {
        let expire = |key: &str, seconds: u64| {
            let mut command = redis::cmd("EXPIRE");
            command.arg(self.key(key)).arg(seconds);
            command
        };
        match command {
            UsageCommand::Hash { key, fields, seconds } => {
                let put = pipeline.cmd("HSET").arg(self.key(key));
                fields.iter().for_each(|(field, value)| {
                    put.arg(field).arg(value);
                });
                pipeline.add_command(expire(key, *seconds));
            }
            UsageCommand::Set { key, members, seconds } => {
                let put = pipeline.cmd("ZADD").arg(self.key(key));
                members.iter().for_each(|(score, member)| {
                    put.arg(*score).arg(member);
                });
                pipeline.add_command(expire(key, *seconds));
            }
            UsageCommand::Keep { key, seconds } => {
                pipeline.add_command(expire(key, *seconds));
            }
            UsageCommand::Trim { key, least, most } => {
                let key = self.key(key);
                pipeline.cmd("ZREMRANGEBYSCORE").arg(&key).arg("-inf").arg(format!("({least}"));
                let last = i64::try_from(*most).map_or(i64::MIN, |most| -1 - most);
                pipeline.cmd("ZREMRANGEBYRANK").arg(&key).arg(0).arg(last);
            }
        }
    }

    /// Sends a pipeline to the owner of the slot. An error of one command is the error of all.
    async fn exchange(&mut self, commands: &Pipeline) -> Result<Vec<Value>, String> {
        self.exchange_but(commands, |_| false).await
    }

    /// Like [`UsageLink::exchange`], but ignores errors for which `harmless` is true.
    async fn exchange_but(
        &mut self,
        commands: &Pipeline,
        harmless: impl Fn(&str) -> bool,
    ) -> Result<Vec<Value>, String> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let exchanged = match tokio::time::timeout(WITHIN, self.send(commands, harmless)).await {
            Ok(exchanged) => exchanged,
            Err(_) => Err(format!("no answer within {} s", WITHIN.as_secs())),
        };
        if exchanged.is_err() {
            // Reconnect after a refusal, too: the next connection may reach another master, or log in as another user.
            self.connection = None;
            self.context.topology.suspect();
        }
        exchanged
    }

    async fn send(
        &mut self,
        commands: &Pipeline,
        harmless: impl Fn(&str) -> bool,
    ) -> Result<Vec<Value>, String> {
        let owner = self.context.topology.owner(usage_slot()).map_err(|error| error.to_string())?;
        let connection = match &mut self.connection {
            Some((address, connection)) if *address == owner => connection,
            other => {
                let opened = connect(&owner, &self.context, RedisPeer::Redis).await?;
                &mut other.insert((owner, opened)).1
            }
        };
        let replies = connection.send_each(commands).await.map_err(|error| as_written(&error))?;
        let read = |reply: Value| match reply.extract_error().map_err(|error| as_written(&error)) {
            Err(error) if harmless(&error) => Ok(Value::Nil),
            read => read,
        };
        replies.into_iter().map(read).collect()
    }
}

/// Returns the texts of an array reply in pairs; any other reply has none.
fn pairs(reply: Value) -> Vec<(String, String)> {
    let text = |value: Value| match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).unwrap_or_default(),
        Value::Double(number) => number.to_string(),
        _ => String::new(),
    };
    let Value::Array(values) = reply else { return Vec::new() };
    let mut values = values.into_iter().map(text);
    let mut pairs = Vec::new();
    while let (Some(first), Some(second)) = (values.next(), values.next()) {
        pairs.push((first, second));
    }
    pairs
}
