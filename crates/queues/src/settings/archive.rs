//! The key `outcomes` of a queue: a duration, or a mapping.

use serde_json::{Value, json};
use weir_config::{FeatureSetting, SectionReader, SettingForm, mapping_schema};
use weir_units::Micros;

use super::key;
use crate::model::{ArchiveRule, MAX_OUTCOMES, MAX_OUTCOMES_KEPT, PayloadRule};

/// The key as a duration, which is `keep`.
pub(super) const OUTCOMES: FeatureSetting = key(
    "outcomes",
    SettingForm::DescribedSpan(Micros::ZERO, MAX_OUTCOMES_KEPT),
    "24h",
    "Retention of the outcomes of items that have left, 0s to 30d; or a mapping: keep, max and payload.",
);

const KEEP: FeatureSetting = key(
    "keep",
    SettingForm::DescribedSpan(Micros::ZERO, MAX_OUTCOMES_KEPT),
    "24h",
    "Retention of outcomes; 0s to 30d.",
);
const MAX: FeatureSetting = key(
    "max",
    SettingForm::Count(1, MAX_OUTCOMES),
    "100_000",
    "Most outcomes that are kept; the oldest are removed first.",
);
const PAYLOAD: FeatureSetting = key(
    "payload",
    SettingForm::Choice(&["none", "digest", "head"]),
    "none",
    "Part of payloads that is kept: nothing, the SHA-1 digest, or the first 256 bytes.",
);

/// Lets the schema of the key be a mapping, too.
pub(super) fn widen(outcomes: &mut Value) {
    let span = outcomes["$ref"].take();
    if let Some(fields) = outcomes.as_object_mut() {
        fields.remove("$ref");
    }
    outcomes["if"] = json!({ "type": "object" });
    outcomes["then"] = mapping_schema(&[KEEP, MAX, PAYLOAD], &[]);
    outcomes["else"] = json!({ "$ref": span });
}

/// Reads the key.
pub(super) fn read(fields: &mut SectionReader<'_, '_>) -> ArchiveRule {
    if !fields.has_mapping(OUTCOMES.key) {
        return ArchiveRule::new(fields.span(&OUTCOMES));
    }
    let rules = [PayloadRule::None, PayloadRule::Digest, PayloadRule::Head];
    fields.mapping(OUTCOMES.key, |fields| ArchiveRule {
        keep: fields.span(&KEEP),
        max: fields.count(&MAX),
        payload: fields.choice(&PAYLOAD, &rules).unwrap_or_default(),
    })
}
