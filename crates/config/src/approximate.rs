//! `approximate` of a strategy: nodes count it on their own, within a bound.

use weir_core::approximate::MAX_NODES;
use weir_core::strategy::{ApproximateNumbers, MAX_SYNC, MIN_SYNC, Strategy};
use weir_units::{CEILING, Micros};

use super::errors::MistakeReport;
use super::fields::{Mapping, NamedNode};
use super::quantities::duration_within;
use super::values::{integer, within};

/// The default of `sync`.
const SYNC: Micros = Micros(100_000);

/// The numbers, and where they were written.
pub(super) struct ApproximateKey<'t> {
    numbers: Option<ApproximateNumbers>,
    value: Option<NamedNode<'t>>,
}

impl<'t> ApproximateKey<'t> {
    /// Takes the key of a strategy, whose store may be the memory of this process.
    pub(super) fn read(fields: &mut Mapping<'t>, in_memory: bool, report: &mut MistakeReport) -> Self {
        let value = fields.take("approximate");
        let numbers = value.as_ref().and_then(|value| numbers(value, in_memory, report));
        Self { numbers, value }
    }

    /// `strategy`, counted on the nodes if the key is there. Reports why it cannot be.
    pub(super) fn checked(&self, strategy: Strategy, report: &mut MistakeReport) -> Option<Strategy> {
        let Some(value) = &self.value else { return Some(strategy) };
        match strategy.with_approximate(self.numbers?) {
            Ok(strategy) => Some(strategy),
            Err(error) => {
                value.report(report, error.to_string());
                None
            }
        }
    }
}

/// Reads the numbers of a value, on a store that may be the memory of this process.
pub(super) fn numbers(
    value: &NamedNode<'_>,
    in_memory: bool,
    report: &mut MistakeReport,
) -> Option<ApproximateNumbers> {
    if in_memory {
        let reason = "is for store.redis: a node with the memory store shares its counters with no other, and asks nobody";
        value.report(report, reason);
    }
    let mut fields = Mapping::new(value, report);
    let help = "say how many nodes count at most, such as 10";
    let nodes = fields.require("nodes", help, report);
    let nodes = nodes.and_then(|value| value.read(report, |s| within(integer(s)?, 2, MAX_NODES)));
    let help = "say how many units above the limit a window may admit at most, such as 50";
    let max_over = fields.require("max_over", help, report);
    let max_over = max_over.and_then(|value| value.read(report, |s| within(integer(s)?, 1, CEILING)));
    let sync = fields.read("sync", report, |s| duration_within(s, MIN_SYNC, MAX_SYNC)).unwrap_or(SYNC);
    fields.finish(report);
    Some(ApproximateNumbers { max_over: max_over?, nodes: nodes?, sync })
}
