//! `on_store_failure` of a strategy: a word, or `local` with its numbers.

use weir_core::algorithm::{MAX_SHARE, Share};
use weir_core::strategy::{FailurePolicy, LocalPolicy, Strategy, WhenLocalFull};

use super::errors::MistakeReport;
use super::fields::{Mapping, NamedNode};
use super::values::{Digits, Scalar, choice, digits, quote};

/// The policy, and where it was written.
pub(super) struct FailurePolicyKey<'t> {
    /// The default after a mistake.
    pub(super) policy: FailurePolicy,
    value: Option<NamedNode<'t>>,
}

impl<'t> FailurePolicyKey<'t> {
    /// Takes the key of a strategy, whose store may be the memory of this process.
    pub(super) fn read(fields: &mut Mapping<'t>, in_memory: bool, report: &mut MistakeReport) -> Self {
        let value = fields.take("on_store_failure");
        let policy = value.as_ref().and_then(|value| policy(value, in_memory, report));
        Self { policy: policy.unwrap_or_default(), value }
    }

    /// True if the strategy says what happens.
    pub(super) fn is_given(&self) -> bool {
        self.value.is_some()
    }

    /// `strategy` with what a node decides with by itself, if the policy says so. Reports a share that it cannot have.
    pub(super) fn checked(&self, strategy: Strategy, report: &mut MistakeReport) -> Option<Strategy> {
        strategy.with_local().map_err(|error| self.report(report, &error.to_string())).ok()
    }

    fn report(&self, report: &mut MistakeReport, reason: &str) {
        if let Some(value) = &self.value {
            value.report(report, reason);
        }
    }
}

/// Reads a word, or `local` with its numbers.
pub(super) fn policy(
    value: &NamedNode<'_>,
    in_memory: bool,
    report: &mut MistakeReport,
) -> Option<FailurePolicy> {
    match value.is_mapping() {
        true => local(value, in_memory, report).map(FailurePolicy::Local),
        false => value.read(report, word),
    }
}

fn word(scalar: Scalar<'_>) -> Result<FailurePolicy, String> {
    if scalar.text == "local" {
        return Err("`local` needs the share of each limit; write { local: { share: 1/4 } }".to_owned());
    }
    let choices =
        [("allow", FailurePolicy::Allow), ("deny", FailurePolicy::Deny), ("error", FailurePolicy::Error)];
    choice(scalar, &choices)
}

fn local(value: &NamedNode<'_>, in_memory: bool, report: &mut MistakeReport) -> Option<LocalPolicy> {
    let mut fields = Mapping::new(value, report);
    let given = fields.require("local", "a policy without numbers is a word: allow, deny or error", report);
    fields.finish(report);
    let given = given?;
    if in_memory {
        let reason = "is for store.redis: the memory store is in this process already, and does not go away";
        given.report(report, reason);
    }
    let mut fields = Mapping::new(&given, report);
    let share = fields.require("share", "say which part of each limit a node has, such as 1/4", report);
    let share = share.and_then(|value| value.read(report, share_of));
    let policies =
        [("allow", WhenLocalFull::Allow), ("deny", WhenLocalFull::Deny), ("error", WhenLocalFull::Error)];
    let when_full = fields.read("when_full", report, |scalar| choice(scalar, &policies));
    fields.finish(report);
    Some(LocalPolicy { share: share?, when_full: when_full.unwrap_or_default() })
}

/// Parses a share, such as `1/4`.
fn share_of(scalar: Scalar<'_>) -> Result<Share, String> {
    let number = |text: &str| match digits(text) {
        Digits::Number(number) => Some(u16::try_from(number).unwrap_or(u16::MAX)),
        Digits::TooLarge => Some(u16::MAX),
        Digits::None => None,
    };
    let parts = scalar.text.split_once('/').and_then(|(part, of)| Some((number(part)?, number(of)?)));
    let Some((part, of)) = parts else {
        return Err(format!("{} is not a share; write A/B, such as 1/4", quote(scalar.text)));
    };
    Share::new(part, of).ok_or_else(|| {
        let bound = format!("in a share A/B, A must be from 1 to B, and B at most {MAX_SHARE}");
        format!("{} is out of bounds: {bound}", scalar.text)
    })
}
