//! Sections of the file that features read. This crate knows their form, and none of them.
//!
//! A feature describes its section once, in a [`SectionSpec`]: the reader, the schema, the flags and the reference follow.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Config;
use super::errors::MistakeReport;
use super::feature_section::{FeatureSection, SectionSettings};
use super::feature_setting::{FeatureSetting, SettingGroup};
use super::fields::Mapping;
use super::overrides::ConfigOverrides;
use super::schema::{name_pattern, schema, section_of};
use super::section_reader::{ReadBefore, SectionFound, SectionReader};
use super::table::Setting;

/// Returns the schema of a value.
pub type SchemaForm = fn() -> Value;

/// A section of the file that a feature reads.
#[derive(Debug)]
pub struct SectionSpec {
    /// The key of the section, at the top of the file.
    pub name: &'static str,
    /// A description of one sentence.
    pub about: &'static str,
    /// The settings: those of the section itself under an empty name, and those of mappings in it.
    pub groups: &'static [SettingGroup],
    /// Keys of the section with a form of their own: the name, a description, the schema.
    pub keys: &'static [SectionKey],
    /// The entries, if the keys are names that the file chooses. One of several files then owns a name.
    pub named: Option<NamedEntries>,
    /// Forms of values that several of its keys have, or lists: `$defs` of the schema.
    pub defs: &'static [(&'static str, SchemaForm)],
    /// The condition for a file that has this section without strategies.
    pub suffices: Suffices,
    /// A name that no strategy may have while the section suffices, and the reason.
    pub reserved: Option<(&'static str, &'static str)>,
    /// Reads the section; `None` if the feature is off.
    pub read: fn(&mut SectionReader<'_, '_>) -> Option<Arc<dyn SectionSettings>>,
    /// Overrides with which the built-in example is served, if they are not given: names and texts.
    pub example: &'static [(&'static str, &'static str)],
}

/// The condition for a file that has a section without strategies.
#[derive(Debug)]
pub enum Suffices {
    /// The section needs strategies.
    Never,
    /// The section has an entry.
    WithEntries,
    /// The condition holds for the keys that are given in the file, by flags or by variables.
    If(fn(&GivenKeys<'_, '_>) -> bool),
}

/// The keys of a section that are given, before their values are read.
#[derive(Debug)]
pub struct GivenKeys<'r, 't> {
    fields: Mapping<'t>,
    overrides: &'r ConfigOverrides,
}

/// The entries of a section whose keys are names.
#[derive(Debug)]
pub struct NamedEntries {
    /// The most of them.
    pub most: usize,
    /// Returns the schema of one.
    pub schema: SchemaForm,
}

/// A key of a section with a form of its own.
#[derive(Debug)]
pub struct SectionKey {
    /// The key.
    pub name: &'static str,
    /// A description of one sentence.
    pub about: &'static str,
    /// Returns the schema of its value.
    pub schema: SchemaForm,
}

/// The sections of all features.
type SectionList = Vec<&'static SectionSpec>;

impl ConfigOverrides {
    /// Sets the sections that features read.
    #[must_use]
    pub fn with_sections(self, sections: SectionList) -> Self {
        Self { extension: Some(Arc::new(sections)), ..self }
    }

    /// Returns the sections that features read.
    #[must_use]
    pub fn sections(&self) -> &[&'static SectionSpec] {
        let sections = self.extension.as_ref().and_then(|sections| sections.downcast_ref::<SectionList>());
        sections.map_or(&[], Vec::as_slice)
    }

    /// Adds the overrides of the built-in example that are not given. A server that was moved to another address is one
    /// of several, which cannot all have the port of the example.
    pub(super) fn with_examples(self) -> Self {
        if self.has("listen") || self.has("admin") {
            return self;
        }
        let examples: Vec<_> = self.sections().iter().flat_map(|section| section.example).copied().collect();
        let add = |given: Self, (name, text): (&str, &str)| match given.has(name) {
            true => given,
            false => given.with(name, text),
        };
        examples.into_iter().fold(self, add)
    }

    /// True if a feature reads this section, and all keys in it are settings.
    pub(super) fn has_settings(&self, section: &str) -> bool {
        let found = self.sections().iter().find(|spec| spec.name == section);
        found.is_some_and(|spec| spec.named.is_none() && spec.keys.is_empty())
    }

    /// Returns the names of all settings of features that have a flag.
    pub(super) fn section_flags(&self) -> impl Iterator<Item = &'static str> {
        self.feature_settings().filter_map(|setting| setting.flag)
    }

    /// Returns the settings of all features.
    pub(super) fn feature_settings(&self) -> impl Iterator<Item = &'static FeatureSetting> {
        let groups = self.sections().iter().flat_map(|section| section.groups);
        groups.flat_map(|group| group.settings)
    }
}

impl Config {
    /// Returns what the configuration says of a feature; `None` if the feature is off.
    #[must_use]
    pub fn section<T: 'static>(&self, name: &str) -> Option<&T> {
        self.sections.iter().find(|section| section.name == name)?.settings()
    }
}

/// Returns the schema of a configuration file with the sections of features.
#[must_use]
pub fn schema_with(sections: &[&SectionSpec]) -> Value {
    let mut schema = schema();
    for section in sections {
        let name = section.name;
        schema["properties"][name] = match &section.named {
            None => section.schema(),
            Some(named) => {
                schema["$defs"][name] = named.schema();
                json!({ "$ref": format!("#/$defs/{name}"), "description": section.about })
            }
        };
        for (name, form) in section.defs {
            schema["$defs"][*name] = form();
        }
        if !matches!(section.suffices, Suffices::Never)
            && let Some(enough) = schema["anyOf"].as_array_mut()
        {
            enough.push(json!({ "required": [name] }));
        }
    }
    schema
}

/// Returns the schema of a mapping with these settings, of which some are `required`.
#[must_use]
pub fn mapping_schema(settings: &[FeatureSetting], required: &[&str]) -> Value {
    let row = |setting: &FeatureSetting| {
        let mut row = setting.row();
        row.required = required.contains(&row.key);
        row
    };
    section_of(&settings.iter().map(row).collect::<Vec<_>>())
}

impl NamedEntries {
    /// Returns the schema of the section.
    fn schema(&self) -> Value {
        json!({
            "type": ["object", "null"], "maxProperties": self.most,
            "propertyNames": { "pattern": name_pattern() },
            "additionalProperties": (self.schema)(),
        })
    }
}

/// Returns the sections that are configured and may stand without strategies.
pub(super) fn sufficing(root: &mut Mapping<'_>, overrides: &ConfigOverrides) -> Vec<&'static SectionSpec> {
    let suffices = |section: &&&'static SectionSpec| match section.suffices {
        Suffices::Never => false,
        Suffices::WithEntries => root.take(section.name).is_some_and(|section| section.has_entries()),
        Suffices::If(holds) => {
            // The section is read later, and its mistakes are reported then.
            let fields = root.section(section.name, &mut MistakeReport::default());
            holds(&GivenKeys { fields, overrides })
        }
    };
    overrides.sections().iter().filter(suffices).copied().collect()
}

impl GivenKeys<'_, '_> {
    /// True if the setting is given.
    #[must_use]
    pub fn has(&self, setting: &FeatureSetting) -> bool {
        setting.is_given(&self.fields, self.overrides)
    }

    /// True if the mapping is in the file, or a setting of it is given.
    #[must_use]
    pub fn has_mapping(&self, key: &str) -> bool {
        self.fields.has(key) || self.overrides.given.has_section(&self.fields.path_of(key))
    }
}

/// Reads the sections of all features.
pub(super) fn sections(
    root: &mut Mapping<'_>,
    before: ReadBefore<'_>,
    overrides: &ConfigOverrides,
    report: &mut MistakeReport,
) -> Vec<FeatureSection> {
    let mut sections = Vec::new();
    for spec in overrides.sections() {
        let fields = root.section(spec.name, report);
        let (found, most) = (fields.len(), spec.named.as_ref().map_or(usize::MAX, |named| named.most));
        if found > most {
            fields.report_here(report, format!("has {found} {}: at most {most}", spec.name));
        }
        let mut reader = SectionReader::new(fields, overrides, report, before);
        let settings = (spec.read)(&mut reader);
        let SectionFound { values, port, node } = reader.finish();
        let section =
            settings.map(|settings| FeatureSection { name: spec.name, settings, values, port, node });
        sections.extend(section);
    }
    sections
}

impl SectionSpec {
    /// Creates a section without keys, which does not suffice.
    #[must_use]
    pub const fn new(
        name: &'static str,
        about: &'static str,
        read: fn(&mut SectionReader<'_, '_>) -> Option<Arc<dyn SectionSettings>>,
    ) -> Self {
        let (groups, keys, defs, example) = (&[], &[], &[], &[]);
        let (named, suffices, reserved) = (None, Suffices::Never, None);
        Self { name, about, groups, keys, named, defs, suffices, reserved, read, example }
    }

    /// Returns the settings of each group, by the path of the group.
    #[must_use]
    pub fn rows(&self) -> Vec<(String, Vec<Setting>)> {
        let rows = |group: &SettingGroup| group.settings.iter().map(FeatureSetting::row).collect();
        let path = |group: &SettingGroup| match group.name {
            "" => self.name.to_owned(),
            name => format!("{}.{name}", self.name),
        };
        self.groups.iter().map(|group| (path(group), rows(group))).collect()
    }

    /// Returns the schema of the section.
    pub(super) fn schema(&self) -> Value {
        let rows = |group: &SettingGroup| group.settings.iter().map(FeatureSetting::row).collect::<Vec<_>>();
        let own = self.groups.iter().find(|group| group.name.is_empty());
        let mut schema = section_of(&own.map(rows).unwrap_or_default());
        // A mapping that is a setting of the section has its form among `defs`.
        let is_setting = |group: &&SettingGroup| {
            let first = group.name.split('.').next().unwrap_or_default();
            first.is_empty() || own.is_some_and(|own| own.settings.iter().any(|one| one.key == first))
        };
        for group in self.groups.iter().filter(|group| !is_setting(group)) {
            let mut inner = section_of(&rows(group));
            inner["description"] = json!(group.about);
            schema["properties"][group.name] = inner;
        }
        for key in self.keys {
            let mut inner = (key.schema)();
            inner["description"] = json!(key.about);
            schema["properties"][key.name] = inner;
        }
        schema["description"] = json!(self.about);
        schema
    }
}
