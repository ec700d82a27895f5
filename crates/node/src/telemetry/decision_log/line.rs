//! One line of the log.

use smallvec::SmallVec;

use weir_core::algorithm::budget::{BudgetVerdict, SettleOutcome};
use weir_core::algorithm::{Algorithm, Engine, LimitVerdict};
use weir_core::key::Subject;
use weir_core::strategy::Limit;
use weir_units::{Micros, Retry};

use super::costs::LoggedCosts;
use super::text::{key, number, quoted, text};

/// Content of a line. Empty fields (no id, no attributes) are omitted.
#[derive(Debug)]
pub struct DecisionLine<'a> {
    /// Time of the decision by the store's clock, if the store answered.
    pub time: Option<Micros>,
    /// Operation: `charge`, `at_most`, `reserve`, `cancel`, `debit`, `settle`, `refund` or `reset`.
    pub operation: &'static str,
    /// The strategy.
    pub strategy: &'a str,
    /// True if the request named no strategy, so that the resource's own applied.
    pub is_for_default: bool,
    /// The request's inline limit.
    pub inline: Option<&'a Algorithm>,
    /// Resource, consumer and attributes.
    pub subject: Subject<'a>,
    /// Requested cost.
    pub cost: u64,
    /// Cost that was charged or given back.
    pub granted: u64,
    /// Reservations only: the longest wait.
    pub max_wait: Option<Micros>,
    /// Idempotency id; empty if there is none.
    pub id: &'a str,
    /// False if it was done before under the same id.
    pub applied: bool,
    /// Outcome, as in metrics.
    pub outcome: &'static str,
    /// Limits that a refund or a reset named.
    pub named: SmallVec<[&'a str; 4]>,
    /// Verdict of each limit.
    pub limits: SmallVec<[(&'a Limit, LimitVerdict); 4]>,
    /// Costs that were asked of limits with costs of their own, or used.
    pub asked: Option<&'a LoggedCosts>,
    /// Costs that were asked and granted, where limits have costs of their own.
    pub costs: Option<&'a BudgetVerdict>,
}

/// True if this outcome is a denial.
pub fn is_denial(outcome: &str) -> bool {
    matches!(outcome, "denied" | "never" | "deny_list" | "banned" | "degraded_denied")
}

impl DecisionLine<'_> {
    /// The rest of the line after its number.
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
        if let Some(asked) = self.asked {
            asked.write(&mut out);
        }
        if let Some(Micros(max_wait)) = self.max_wait {
            number(&mut out, "max_wait_us", max_wait);
        }
        if !self.id.is_empty() {
            text(&mut out, "id", self.id);
            key(&mut out, "applied");
            out.extend_from_slice(if self.applied { b"true" } else { b"false" });
        }
        if let Some(Micros(span)) = self.costs.and_then(|costs| costs.held_for) {
            number(&mut out, "held_for_us", span);
        }
        text(&mut out, "outcome", self.outcome);
        if let Some(found) = self.costs.and_then(|costs| costs.outcome) {
            text(&mut out, "settlement", settlement(found));
        }
        self.limits(&mut out);
        out.extend_from_slice(b"}\n");
        out
    }

    /// True if the limits decided. Other operations are done regardless of limits.
    fn is_question(&self) -> bool {
        matches!(self.operation, "charge" | "at_most" | "reserve")
    }

    /// Sorted by name, so that equal calls have equal lines.
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
            if let Some(one) = self.costs.and_then(|costs| costs.limits.get(index)) {
                number(out, "cost", one.cost);
                number(out, "granted", one.granted.unwrap_or(0));
                if let Some(charged) = one.charged {
                    number(out, "charged", charged);
                }
                number(out, "held", one.held);
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

/// The hold that a settlement found.
const fn settlement(found: SettleOutcome) -> &'static str {
    match found {
        SettleOutcome::Settled => "settled",
        SettleOutcome::Late => "late",
        SettleOutcome::Unknown => "unknown",
    }
}

/// The parameters of an inline limit, from which it can be rebuilt.
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
        Engine::Slots(slots) => {
            window(out, "bucketed_window", Micros(slots.window()));
            number(out, "buckets", slots.parts());
        }
        // Inline limits have no other algorithms.
        Engine::Interval(_) | Engine::WarmUp(_) => out.push(b'"'),
    }
    out.push(b'}');
}
