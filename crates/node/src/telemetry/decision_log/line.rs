//! One line of the log.

use smallvec::SmallVec;

use weir_core::algorithm::{Algorithm, Engine, LimitVerdict};
use weir_core::key::Subject;
use weir_core::strategy::Limit;
use weir_units::{Micros, Retry};

/// What a line says. Fields that say nothing (no id, no attributes) are not written.
#[derive(Debug)]
pub struct DecisionLine<'a> {
    /// The time of the decision by the store's clock, where the store has answered.
    pub time: Option<Micros>,
    /// What was done: `charge`, `at_most`, `reserve`, `cancel`, `debit`, `refund` or `reset`.
    pub operation: &'static str,
    /// The strategy.
    pub strategy: &'a str,
    /// Whether the request named none, so that it is the one of the resource.
    pub is_for_default: bool,
    /// The limit that the request brought along.
    pub inline: Option<&'a Algorithm>,
    /// Of what and whom.
    pub subject: Subject<'a>,
    /// What was asked for.
    pub cost: u64,
    /// What was charged or given back.
    pub granted: u64,
    /// Of a reservation: how long it may wait.
    pub max_wait: Option<Micros>,
    /// The id under which it happens once; empty if there is none.
    pub id: &'a str,
    /// False where it had been done before under the same id.
    pub applied: bool,
    /// How it ended.
    pub outcome: &'static str,
    /// The limits that a refund or a reset has named.
    pub named: SmallVec<[&'a str; 4]>,
    /// What each limit said.
    pub limits: SmallVec<[(&'a Limit, LimitVerdict); 4]>,
}

/// Whether a call that ended so was denied.
#[must_use]
pub fn is_denial(outcome: &str) -> bool {
    matches!(outcome, "denied" | "never" | "deny_list" | "degraded_denied")
}

impl DecisionLine<'_> {
    /// The line behind its number.
    pub(super) fn text(&self, time: Micros) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        number(&mut out, "time_us", time.0);
        text(&mut out, "operation", self.operation);
        text(&mut out, "strategy", self.strategy);
        if self.is_for_default {
            out.extend_from_slice(br#","default":true"#);
        }
        if let Some(algorithm) = self.inline {
            inline(&mut out, algorithm);
        }
        text(&mut out, "resource", self.subject.resource);
        text(&mut out, "consumer", self.subject.consumer);
        self.attributes(&mut out);
        number(&mut out, "cost", self.cost);
        number(&mut out, "granted", self.granted);
        if let Some(Micros(max_wait)) = self.max_wait {
            number(&mut out, "max_wait_us", max_wait);
        }
        if !self.id.is_empty() {
            text(&mut out, "id", self.id);
            key(&mut out, "applied");
            out.extend_from_slice(if self.applied { b"true" } else { b"false" });
        }
        text(&mut out, "outcome", self.outcome);
        self.limits(&mut out);
        out.extend_from_slice(b"}\n");
        out
    }

    /// Whether limits were asked to let something pass. Other operations are made whatever limits say.
    fn is_question(&self) -> bool {
        matches!(self.operation, "charge" | "at_most" | "reserve")
    }

    /// In the order of their names, so that equal calls have equal lines.
    fn attributes(&self, out: &mut Vec<u8>) {
        if self.subject.attributes.is_empty() {
            return;
        }
        let mut all: SmallVec<[(&str, &str); 4]> = self.subject.attributes.iter().collect();
        all.sort_unstable();
        key(out, "attributes");
        out.push(b'{');
        for (index, (name, value)) in all.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            quoted(out, name);
            out.push(b':');
            quoted(out, value);
        }
        out.push(b'}');
    }

    fn limits(&self, out: &mut Vec<u8>) {
        if !self.named.is_empty() {
            key(out, "named");
            for (index, name) in self.named.iter().enumerate() {
                out.push(if index == 0 { b'[' } else { b',' });
                quoted(out, name);
            }
            out.push(b']');
        }
        key(out, "limits");
        out.push(b'[');
        for (index, (limit, said)) in self.limits.iter().enumerate() {
            out.extend_from_slice(if index == 0 { br#"{"name":"# } else { br#",{"name":"# });
            quoted(out, &limit.name);
            if self.is_question() {
                key(out, "denies");
                out.extend_from_slice(if said.fits() { b"false" } else { b"true" });
            }
            if limit.algorithm.is_shadow() {
                out.extend_from_slice(br#","shadow":true"#);
            }
            number(out, "limit", limit.algorithm.limit());
            number(out, "remaining", said.remaining);
            if let Retry::After(Micros(wait)) = said.retry {
                number(out, "retry_after_us", wait);
            }
            number(out, "reset_after_us", said.reset_after.0);
            out.push(b'}');
        }
        out.push(b']');
    }
}

/// The numbers of a limit that a request brought along, from which it can be made again.
fn inline(out: &mut Vec<u8>, algorithm: &Algorithm) {
    key(out, "inline");
    out.extend_from_slice(br#"{"algorithm":""#);
    let window = |out: &mut Vec<u8>, name: &str, Micros(span): Micros| {
        out.extend_from_slice(name.as_bytes());
        out.push(b'"');
        number(out, "limit", algorithm.limit());
        number(out, "window_us", span);
    };
    match algorithm.engine() {
        Engine::Bucket(bucket) => {
            out.extend_from_slice(br#"token_bucket""#);
            number(out, "rate", bucket.drain);
            number(out, "period_us", algorithm.weight());
            number(out, "burst", algorithm.limit());
        }
        Engine::Sliding(sliding) => window(out, "sliding_window", Micros(sliding.span)),
        Engine::Log(log) => window(out, "sliding_log", Micros(log.span)),
        Engine::Window(fixed) => window(out, "fixed_window", Micros(fixed.span)),
        // Requests bring no others along.
        Engine::Interval(_) | Engine::Slots(_) | Engine::WarmUp(_) => out.push(b'"'),
    }
    out.push(b'}');
}

fn key(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn number(out: &mut Vec<u8>, name: &str, value: u64) {
    key(out, name);
    // Writing to a Vec cannot fail.
    let _ = serde_json::to_writer(out, &value);
}

fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    key(out, name);
    quoted(out, value);
}

fn quoted(out: &mut Vec<u8>, text: &str) {
    // Writing to a Vec cannot fail.
    let _ = serde_json::to_writer(out, text);
}
