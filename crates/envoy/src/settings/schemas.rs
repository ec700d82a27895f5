//! The forms of `envoy.rules` and `envoy.all_or_none` in the schema.

use serde_json::{Value, json};
use weir_config::{FeatureSetting, SettingForm, mapping_schema};

use super::rules::{ALGORITHMS, MAX_PATH};
use crate::overlay::{MAX_BY, MAX_DOMAINS, MAX_ENVOY_TEXT, MAX_RULES};

const NUMBER: SettingForm = SettingForm::Count(0, u32::MAX as u64);

/// The names of the algorithms.
const WORDS: [&str; ALGORITHMS.len()] = {
    let mut words = [""; ALGORITHMS.len()];
    let mut index = 0;
    while index < words.len() {
        words[index] = ALGORITHMS[index].0;
        index += 1;
    }
    words
};

const RULE: [FeatureSetting; 10] = [
    FeatureSetting::new("domain", SettingForm::NeededText(MAX_ENVOY_TEXT), "The domain of the rules."),
    FeatureSetting::new(
        "path",
        SettingForm::NeededText(MAX_PATH),
        "The rules, as the label `rule` of weir_envoy_hits_total names them; an element may end in *.",
    ),
    FeatureSetting::new(
        "algorithm",
        SettingForm::Choice(&WORDS),
        "How hits are counted; fixed_window by default.",
    ),
    FeatureSetting::new("burst", NUMBER, "Hits that pass at once, for buckets; the limit by default."),
    FeatureSetting::new("count_rejected", SettingForm::Switch, "Whether denied hits are charged too."),
    FeatureSetting::new("unit_multiplier", NUMBER, "How many units a period has."),
    FeatureSetting::new(
        "on_store_failure",
        SettingForm::Defined("failure_policy", ""),
        "The answer while the store fails.",
    ),
    FeatureSetting::new(
        "bill",
        SettingForm::Switch,
        "Whether a descriptor's own hits are charged above the limit.",
    ),
    FeatureSetting::new(
        "max_debt",
        SettingForm::Defined("max_debt", ""),
        "How far bills may exceed the limit.",
    ),
    FeatureSetting::new(
        "approximate",
        SettingForm::Defined("approximate", ""),
        "Nodes count on their own, within this bound.",
    ),
];

/// Entries of `envoy.rules`.
pub(super) fn rules() -> Value {
    let rule = mapping_schema(&RULE, &["domain", "path"]);
    json!({ "type": ["array", "null"], "maxItems": MAX_RULES, "items": rule })
}

/// Domains whose descriptors are charged together.
pub(super) fn all_or_none() -> Value {
    let about = "The domain of the descriptors.";
    let domain = FeatureSetting::new("domain", SettingForm::NeededText(MAX_ENVOY_TEXT), about);
    let mut domain = mapping_schema(&[domain], &["domain"]);
    domain["required"] = json!(["domain", "by"]);
    let text =
        json!({ "type": ["string", "number", "boolean"], "minLength": 1, "maxLength": MAX_ENVOY_TEXT });
    domain["properties"]["by"] = json!({
        "description": "The keys of the entries that they have in common; none: the whole request.",
        "type": "array", "items": text, "maxItems": MAX_BY, "uniqueItems": true,
    });
    json!({ "type": ["array", "null"], "maxItems": MAX_DOMAINS, "items": domain })
}
