//! `ban` of a limit: when a caller that it denies is banned, and for how long.

use weir_core::strategy::{BanTerms, MAX_BAN_AFTER, Scope};
use weir_units::Micros;

use super::errors::MistakeReport;
use super::fields::{Mapping, NamedNode};
use super::quantities::duration_within;
use super::values::{Scalar, integer, within};

const SHORTEST: Micros = Micros::from_secs(1);
const LONGEST_WITHIN: Micros = Micros::from_secs(24 * 3_600);
const LONGEST_BAN: Micros = Micros::from_secs(52 * 7 * 24 * 3_600);

const NEEDS_CONTROL: &str =
    "bans are lifted and shared by live control, which is off: set `server.control: true`, or remove `ban`";

/// The key, as far as it could be read.
pub(super) struct BanKey<'t> {
    value: NamedNode<'t>,
    terms: Option<BanTerms>,
}

impl<'t> BanKey<'t> {
    /// Takes the key of a limit, if it has one.
    pub(super) fn take(
        fields: &mut Mapping<'t>,
        has_control: bool,
        report: &mut MistakeReport,
    ) -> Option<Self> {
        let value = fields.take("ban")?;
        if !has_control {
            value.report(report, NEEDS_CONTROL);
        }
        let mut keys = Mapping::new(&value, report);
        let after = keys.require("after", "say after how many denials, such as 20", report);
        let after = after.and_then(|value| value.read(report, after_of));
        let within = keys.require("within", "say within which time, such as 1m", report);
        let within =
            within.and_then(|value| value.read(report, |s| duration_within(s, SHORTEST, LONGEST_WITHIN)));
        let lasts = keys.require("for", "say how long the ban lasts, such as 10m", report);
        let lasts = lasts.and_then(|value| value.read(report, |s| duration_within(s, SHORTEST, LONGEST_BAN)));
        keys.finish(report);
        let terms = match (after, within, lasts) {
            (Some(after), Some(within), Some(lasts)) => Some(BanTerms { after, within, lasts }),
            _ => None,
        };
        Some(Self { value, terms })
    }

    /// The terms, if a limit with this scope can have them.
    pub(super) fn checked(
        &self,
        scope: Option<&Scope>,
        is_shadow: bool,
        report: &mut MistakeReport,
    ) -> Option<BanTerms> {
        if let Some(Err(error)) = scope.map(|scope| BanTerms::check(scope, is_shadow)) {
            self.value.report(report, error.to_string());
            return None;
        }
        self.terms
    }
}

fn after_of(scalar: Scalar<'_>) -> Result<u32, String> {
    let after = within(integer(scalar)?, 1, MAX_BAN_AFTER)?;
    u32::try_from(after).map_err(|error| error.to_string())
}
