//! Reads a decision log, and refuses one that is not complete or not consistent. Lines that were cut off while they were
//! written, by a full disk or a kill, are reported, and refused only if the log has to be whole.

mod costs;
mod inline;
mod line;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_config::KeyShare;
use weir_core::algorithm::Algorithm;
use weir_units::Micros;

use self::line::LogLine;
use super::{CostByName, MAX_CALLS};

/// Within a process, decisions are logged when they are settled. Those that waited longer for Redis are logged later,
/// but never by more than this, unless the clock was set back.
const MAX_STEP_BACK: Micros = Micros::from_secs(1);

/// A decision log that can be replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedDecisions {
    /// The share of keys that it has.
    pub keys: KeyShare,
    /// The lines of the log, in the order of their times.
    pub decisions: Vec<LoggedDecision>,
    /// Lines that were cut off.
    pub torn: Vec<TornLine>,
    /// The beginning of the log, if it is not with the first line of its process.
    pub earlier: Option<EarlierLines>,
}

/// Lines before the first one of the log. The limits may have been in use where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierLines {
    /// Position of the first line: the index of the file, from 0, and the line, from 1.
    pub place: (usize, u64),
    /// The number of lines that the process wrote before this one.
    pub count: u64,
}

/// A line that was cut off while it was written: the disk was full, or the process was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornLine {
    /// Position: the index of the file, from 0, and the line, from 1.
    pub place: (usize, u64),
    /// Decisions that the log lacks from here to the next line: this one, and those that were dropped after it. At the end of a
    /// process' lines only the torn one is known.
    pub lost: u64,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedDecision {
    /// Position: the index of the file, from 0, and the line, from 1.
    pub place: (usize, u64),
    /// Time of the decision, by the store's clock.
    pub time: Micros,
    /// Operation.
    pub operation: LoggedOperation,
    /// The strategy that decided.
    pub strategy: String,
    /// True if the request named no strategy, so that the resource's own applied.
    pub is_for_default: bool,
    /// The request's inline limit.
    pub inline: Option<Algorithm>,
    /// The resource.
    pub resource: String,
    /// The consumer.
    pub consumer: String,
    /// Attributes.
    pub attributes: Vec<(String, String)>,
    /// Requested cost.
    pub cost: u64,
    /// Cost that was charged or given back.
    pub granted: u64,
    /// Costs by name; of a settlement or a debit what was used.
    pub costs: Vec<CostByName>,
    /// The duration of the hold of the granted units.
    pub hold_for: Option<Micros>,
    /// The grant of each limit, where costs have names.
    pub granted_by: Vec<(String, u64)>,
    /// The idempotency id; empty if there was none.
    pub id: String,
    /// Limits that a refund or a reset named.
    pub named: Vec<String>,
    /// Outcome, as in the log.
    pub outcome: String,
    incarnation: usize,
    sequence: u64,
}

/// Logged operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedOperation {
    /// A plain call.
    Charge,
    /// As much as fits.
    AtMost,
    /// A call that waits for its turn.
    Reserve {
        /// For so long at most.
        max_wait: Micros,
    },
    /// A reservation was cancelled.
    Cancel,
    /// A debit of actual use.
    Debit,
    /// The settlement of a hold.
    Settle,
    /// A cost was given back.
    Refund,
    /// Limits were made full again.
    Reset,
}

impl LoggedDecision {
    /// True if the call was allowed; `None` if the operation was not a question, or the store did not answer.
    #[must_use]
    pub fn admitted(&self) -> Option<bool> {
        match self.outcome.as_str() {
            "allowed" | "peeked" | "repeated" | "allow_list" => Some(true),
            "denied" | "never" | "deny_list" | "banned" => Some(false),
            _ => None,
        }
    }

    /// True if the store did not answer: a failure policy did, or the call got an error. Nobody knows what was charged.
    #[must_use]
    pub fn is_without_store(&self) -> bool {
        matches!(self.outcome.as_str(), "degraded_allowed" | "degraded_denied" | "error")
    }
}

/// Reason and position of an error in a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}, line {line}, column {column}: {reason}", file.display())]
pub struct ReplayRefused {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// The byte in it, from 1.
    pub column: usize,
    /// The mistake.
    pub reason: String,
}

/// A mistake in a line: its column and the reason.
type Mistake = (usize, String);

/// Reads the files of a log, of which the oldest comes first. With `strict`, a torn line is refused.
pub fn read_decision_log(
    files: &[(PathBuf, String)],
    strict: bool,
) -> Result<LoggedDecisions, ReplayRefused> {
    let mut reader = LogReader { strict, ..LogReader::default() };
    let refused = |(file, line): (usize, u64), (column, reason): Mistake| ReplayRefused {
        file: files.get(file).map_or_else(PathBuf::new, |(path, _): &(PathBuf, String)| path.clone()),
        line,
        column,
        reason,
    };
    for (file, (_, text)) in files.iter().enumerate() {
        reader.after_torn = false;
        for (line, text) in (1..).zip(text.lines()) {
            reader.line((file, line), text).map_err(|mistake| refused((file, line), mistake))?;
        }
    }
    let Some(keys) = reader.keys else {
        let reason = "there is no line: the log is empty".to_owned();
        return Err(refused((0, 1), (1, reason)));
    };
    let mut decisions = reader.decisions;
    decisions.sort_by_key(|one| (one.time, one.incarnation, one.sequence));
    for same in decisions.chunk_by(|one, next| one.time == next.time) {
        if let Some((place, reason)) = unordered(same, &reader.incarnations, files) {
            return Err(refused(place, (1, reason)));
        }
    }
    Ok(LoggedDecisions { keys, decisions, torn: reader.torn, earlier: reader.earlier })
}

/// Two lines with the same time whose order is unknown, because two processes wrote them.
fn unordered(
    same: &[LoggedDecision],
    incarnations: &[ReadIncarnation],
    files: &[(PathBuf, String)],
) -> Option<((usize, u64), String)> {
    let first = same.first()?;
    if same.iter().all(|one| one.incarnation == first.incarnation) {
        return None;
    }
    let mut whose: HashMap<(bool, &str), &LoggedDecision> = HashMap::new();
    for one in same {
        for name in [(true, one.resource.as_str()), (false, one.consumer.as_str())] {
            if name.1.is_empty() {
                continue;
            }
            let other = *whose.entry(name).or_insert(one);
            if other.incarnation != one.incarnation {
                let file = files.get(other.place.0).map_or(Path::new(""), |(path, _)| path);
                let text = |number: usize| incarnations.get(number).map_or("", |it| &it.name);
                let reason = format!(
                    "the order is lost: incarnation {} has decided about {:?} at the same time as incarnation {} at \
                     {}, line {}",
                    text(one.incarnation),
                    name.1,
                    text(other.incarnation),
                    file.display(),
                    other.place.1
                );
                return Some((one.place, reason));
            }
        }
    }
    None
}

#[derive(Default)]
struct LogReader {
    keys: Option<KeyShare>,
    incarnations: Vec<ReadIncarnation>,
    by_name: HashMap<String, usize>,
    decisions: Vec<LoggedDecision>,
    torn: Vec<TornLine>,
    earlier: Option<EarlierLines>,
    /// True if a torn line is refused.
    strict: bool,
    /// True if the line before was torn, so that numbers may be missing.
    after_torn: bool,
}

/// A process that wrote lines.
struct ReadIncarnation {
    name: String,
    /// Number of its last line.
    sequence: u64,
    /// Latest time of its lines with a store's time.
    latest: Micros,
}

impl LogReader {
    fn line(&mut self, place: (usize, u64), text: &str) -> Result<(), Mistake> {
        let object = match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err((1, "this is no line of a decision log: no JSON object".to_owned())),
            // What is cut off is the beginning of an object, and ends too early.
            Err(error) if error.is_eof() && text.starts_with('{') && !self.strict => {
                self.torn.push(TornLine { place, lost: 1 });
                self.after_torn = true;
                return Ok(());
            }
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.split(" at line ").next().unwrap_or_default();
                return Err((error.column().max(1), format!("this is no line of a decision log: {reason}")));
            }
        };
        let line = LogLine { text, object };
        if self.decisions.len() == MAX_CALLS {
            return Err((1, format!("a replay has at most {MAX_CALLS} decisions")));
        }
        if line.text("log")? != "decisions" {
            let reason =
                "this is a log of denials, which has not what was allowed; replay the log `decisions`";
            return Err(line.at("log", reason.to_owned()));
        }
        self.check_share(&line)?;
        let mut decision = line.decision(place)?;
        decision.incarnation = self.incarnation(&line, &decision)?;
        self.after_torn = false;
        self.decisions.push(decision);
        Ok(())
    }

    /// Checks that all lines have the same share of keys, and that their keys are in it.
    fn check_share(&mut self, line: &LogLine<'_>) -> Result<(), Mistake> {
        let given = line.object.get("keys");
        let share =
            given.and_then(Value::as_f64).and_then(KeyShare::new).filter(|keys| *keys > KeyShare::NONE);
        let Some(share) = share else {
            let reason = "`keys` must say which part of all keys the log has, above 0 and up to 1";
            return Err(
                line.at("keys", format!("{reason}: a log that is sampled otherwise cannot be replayed"))
            );
        };
        let known = *self.keys.get_or_insert(share);
        if known != share {
            let reason = format!(
                "`keys` is {share}, and {known} on the lines before: which keys are complete changes within the log"
            );
            return Err(line.at("keys", reason));
        }
        let (resource, consumer) = (line.text("resource")?, line.text("consumer")?);
        if !share.has(resource, consumer) {
            let reason = format!(
                "resource {resource:?} and consumer {consumer:?} are not among the {share} of all keys that the log \
                 has: it is sampled otherwise"
            );
            return Err(line.at("resource", reason));
        }
        Ok(())
    }

    /// The process that wrote the line. Checks that the line's number follows its last one.
    fn incarnation(&mut self, line: &LogLine<'_>, decision: &LoggedDecision) -> Result<usize, Mistake> {
        let name = line.text("incarnation")?;
        let sequence = decision.sequence;
        let is_timed = decision.limits_said();
        let Some(&known) = self.by_name.get(name) else {
            // The first lines of the oldest process may be in a file that was deleted.
            if sequence != 1 && !self.incarnations.is_empty() && !self.after_torn {
                let reason = format!(
                    "the lines 1 to {} of incarnation {name} are missing: they were dropped, or are in a file that was \
                     not given before this one",
                    sequence.saturating_sub(1)
                );
                return Err(line.at("sequence", reason));
            }
            let number = self.incarnations.len();
            if number == 0 && sequence > 1 && !self.after_torn {
                let count = sequence - 1;
                self.earlier = Some(EarlierLines { place: decision.place, count });
            }
            self.by_name.insert(name.to_owned(), number);
            let latest = if is_timed { decision.time } else { Micros::ZERO };
            self.incarnations.push(ReadIncarnation { name: name.to_owned(), sequence, latest });
            return Ok(number);
        };
        let Some(last) = self.incarnations.get_mut(known) else { return Ok(known) };
        let missing = sequence.saturating_sub(last.sequence.saturating_add(1));
        if missing > 0
            && self.after_torn
            && let Some(torn) = self.torn.last_mut()
        {
            torn.lost = missing;
        } else if sequence != last.sequence.saturating_add(1) {
            let reason = match sequence > last.sequence {
                true => format!(
                    "{} lines are missing: {sequence} follows {}. They were dropped, or the log was sampled otherwise",
                    sequence - last.sequence - 1,
                    last.sequence
                ),
                false => format!("the order is lost: {sequence} follows {}", last.sequence),
            };
            return Err(line.at("sequence", reason));
        }
        last.sequence = sequence;
        if is_timed {
            if decision.time.0.saturating_add(MAX_STEP_BACK.0) < last.latest.0 {
                let back = Micros(last.latest.0 - decision.time.0);
                let reason = format!("the order is lost: the clock of the store was set back by {back}");
                return Err(line.at("time_us", reason));
            }
            last.latest = last.latest.max(decision.time);
        }
        Ok(known)
    }
}

impl LoggedDecision {
    /// True if its time is the store's.
    fn limits_said(&self) -> bool {
        matches!(
            self.outcome.as_str(),
            "allowed" | "peeked" | "repeated" | "denied" | "never" | "done" | "known"
        )
    }
}
