//! Reads a section of a feature. Lists and values of the trunk are in `section_reader/`.

mod lists;
mod values;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use weir_core::algorithm::Rate;
use weir_core::strategy::{Field, Rules, check_name};
use weir_units::{LONGEST_SPAN, Micros};

use super::errors::MistakeReport;
use super::feature_section::{FeaturePort, ShownText, ShownValue};
use super::feature_setting::{FeatureSetting, SettingForm};
use super::fields::{KeyedValue, MAX_PATH, Mapping};
use super::listen::{ListenAddress, listen_address, same_address};
use super::node_name::node_name;
use super::overrides::ConfigOverrides;
use super::quantities::{duration_within, rate, size, written_duration};
use super::sentences::sentence;
use super::table::{Applies, ServerConfig, TlsConfig};
use super::tls::port_tls;
use super::values::{Scalar, boolean, choice, integer, quote, text_within, within};

/// Reads a section, or a mapping in it. Each reader must be finished, which reports the keys that nobody has read.
pub struct SectionReader<'r, 't> {
    fields: Mapping<'t>,
    overrides: &'r ConfigOverrides,
    report: &'r mut MistakeReport,
    before: ReadBefore<'r>,
    found: SectionFound,
}

/// The parts of the file that are read before the sections of features.
#[derive(Clone, Copy)]
pub(super) struct ReadBefore<'r> {
    pub(super) server: &'r ServerConfig,
    pub(super) rules: &'r Rules,
    pub(super) has_redis: bool,
}

/// The parts of a section besides its settings.
#[derive(Default)]
pub(super) struct SectionFound {
    pub(super) values: Vec<ShownValue>,
    pub(super) port: Option<FeaturePort>,
    /// The name of this node.
    pub(super) node: Option<String>,
}

impl<'r, 't> SectionReader<'r, 't> {
    /// Creates the reader of a section.
    pub(super) fn new(
        fields: Mapping<'t>,
        overrides: &'r ConfigOverrides,
        report: &'r mut MistakeReport,
        before: ReadBefore<'r>,
    ) -> Self {
        Self { fields, overrides, report, before, found: SectionFound::default() }
    }

    /// True if the section is in the file.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.fields.is_present()
    }

    /// True if the section has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.len() == 0
    }

    /// Returns the section `server`.
    #[must_use]
    pub fn server(&self) -> &ServerConfig {
        self.before.server
    }

    /// True if the state lives in Redis.
    #[must_use]
    pub fn has_redis(&self) -> bool {
        self.before.has_redis
    }

    /// Returns the attributes that a question for this resource and strategy needs; an error if nothing decides it.
    pub fn attributes_of(&self, resource: &str, strategy: &str) -> Result<Vec<String>, String> {
        let resolved =
            self.before.rules.resolve(resource, strategy).map_err(|unknown| unknown.to_string())?;
        let fields = resolved.strategy.limits().iter().flat_map(|limit| limit.scope.fields());
        let attribute = |field: &Field| match field {
            Field::Attribute(name) => Some(name.to_string()),
            _ => None,
        };
        Ok(fields.filter_map(attribute).collect())
    }

    /// Reads an address; `None` if it is absent.
    pub fn address(&mut self, setting: &FeatureSetting) -> Option<ListenAddress> {
        let address = self.value(setting, listen_address);
        self.show(setting, address.as_ref().map_or_else(String::new, ToString::to_string));
        address
    }

    /// Reads a path; `None` if it is absent. In the file it is relative to the file's directory.
    pub fn file(&mut self, setting: &FeatureSetting) -> Option<PathBuf> {
        let SettingForm::File(unset) = setting.form else { return None };
        let parse = |scalar: Scalar<'_>| text_within(scalar, MAX_PATH).map(PathBuf::from);
        let at = self.fields.take(setting.key).map(|value| value.at()).unwrap_or_default();
        let from_file = self.fields.read(setting.key, self.report, parse);
        let from_file = from_file.map(|path| self.report.resolve(at, &path));
        let given = self.given(setting, parse);
        let path = given.or(from_file);
        self.show(setting, path.as_ref().map_or_else(|| unset.to_owned(), |path| path.display().to_string()));
        path
    }

    /// Reads a whole number.
    pub fn count(&mut self, setting: &FeatureSetting) -> u64 {
        let SettingForm::Count(min, max) = setting.form else { return 0 };
        let read = |scalar: Scalar<'_>| integer(scalar).and_then(|number| within(number, min, max));
        let number = self.value(setting, read).or_else(|| setting.default.replace('_', "").parse().ok());
        let number = number.unwrap_or(min);
        self.show(setting, number.to_string());
        number
    }

    /// Reads a duration.
    pub fn span(&mut self, setting: &FeatureSetting) -> Micros {
        let span = self.optional_span(setting).unwrap_or_default();
        self.show(setting, written_duration(span));
        span
    }

    /// Reads a duration; `None` if it is absent and has no default.
    pub fn optional_span(&mut self, setting: &FeatureSetting) -> Option<Micros> {
        let (SettingForm::Span(min, max) | SettingForm::DescribedSpan(min, max)) = setting.form else {
            return None;
        };
        self.value_or_default(setting, |scalar| duration_within(scalar, min, max))
    }

    /// Reads a number of bytes.
    pub fn size(&mut self, setting: &FeatureSetting) -> u64 {
        let SettingForm::Size(min, max) = setting.form else { return 0 };
        let read = |scalar: Scalar<'_>| within(size(scalar)?, min, max);
        self.value_or_default(setting, read).unwrap_or(min) as u64
    }

    /// Reads true or false; false if it is absent and has no default.
    pub fn switch(&mut self, setting: &FeatureSetting) -> bool {
        let is_on = self.value_or_default(setting, boolean).unwrap_or_default();
        self.show(setting, is_on.to_string());
        is_on
    }

    /// Reads the name of this node; `None` if it is absent.
    pub fn node_name(&mut self, setting: &FeatureSetting) -> Option<String> {
        let SettingForm::NodeName(unset) = setting.form else { return None };
        let name = self.value(setting, node_name);
        self.show(setting, name.clone().unwrap_or_else(|| unset.to_owned()));
        self.found.node.clone_from(&name);
        name
    }

    /// Reads one of several words, which stand for `meanings`, in order.
    pub fn choice<T: Copy>(&mut self, setting: &FeatureSetting, meanings: &[T]) -> Option<T> {
        let SettingForm::Choice(words) = setting.form else { return None };
        let choices: Vec<_> = words.iter().copied().zip(meanings.iter().copied()).collect();
        self.value_or_default(setting, |scalar| choice(scalar, &choices))
    }

    /// Reads a rate; `None` if it is absent.
    pub fn rate(&mut self, setting: &FeatureSetting) -> Option<Rate> {
        let SettingForm::Rate(most, bounds) = setting.form else { return None };
        let read = |scalar: Scalar<'_>| match rate(scalar)? {
            Rate { count, period } if !(1..=most).contains(&count) || !spans().contains(&period) => {
                Err(format!("{} is out of bounds: {bounds}", quote(scalar.text)))
            }
            rate => Ok(rate),
        };
        self.value_or_default(setting, read)
    }

    /// Reads the TLS of the port, in the form of `server.tls`.
    pub fn tls(&mut self, key: &'static str) -> Option<TlsConfig> {
        let domains = self.before.server.identity.as_ref().map(|identity| &identity.trust_domains);
        let domains = domains.filter(|domains| !domains.is_empty());
        let tls = port_tls(key, domains, &mut self.fields, self.overrides, self.report);
        self.show_whole(key, Applies::AtRestart, format!("{tls:?}"));
        tls
    }

    /// Sets the port of the feature. An address that another port has is a mistake.
    pub fn listen(&mut self, key: &'static str, port: FeaturePort) {
        let ServerConfig { listen, admin, control_listen, .. } = self.before.server;
        let admin = ListenAddress::from(*admin);
        let others =
            [("listen", Some(listen)), ("admin", Some(&admin)), ("control_listen", control_listen.as_ref())];
        for (name, other) in others {
            if other.is_some_and(|other| same_address(&port.address, other)) {
                let reason =
                    format!("{} is the address of `server.{name}` too; each needs its own", port.address);
                self.report(key, reason);
            }
        }
        if port.tls.is_some() && matches!(port.address, ListenAddress::Unix(_)) {
            self.report("tls", "is for ports: a Unix socket has no TLS, and file modes say who may connect");
        }
        self.found.port = Some(port);
    }

    /// Reads a text of at most `max` bytes.
    pub fn text(&mut self, key: &'static str, max: usize) -> Option<String> {
        self.fields.read(key, self.report, |scalar| text_within(scalar, max))
    }

    /// Reads one of several words.
    pub fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.fields.read(key, self.report, |scalar| choice(scalar, words))
    }

    /// Reads a whole number within bounds.
    pub fn number(&mut self, key: &'static str, min: u64, max: u64) -> Option<u64> {
        self.fields.read(key, self.report, |s| integer(s).and_then(|number| within(number, min, max)))
    }

    /// Reads a duration within bounds.
    pub fn duration(&mut self, key: &'static str, min: Micros, max: Micros) -> Option<Micros> {
        self.fields.read(key, self.report, |scalar| duration_within(scalar, min, max))
    }

    /// Reads a list of texts of at most `max` bytes each; `None` if it is absent.
    pub fn texts(&mut self, key: &'static str, max: usize) -> Option<Vec<String>> {
        let items = self.fields.take(key)?.items(self.report)?;
        Some(items.iter().filter_map(|item| item.read(self.report, |s| text_within(s, max))).collect())
    }

    /// Reads a mapping of names to texts of at most `max` bytes each.
    pub fn named_texts(&mut self, key: &'static str, max: usize) -> Vec<(String, String)> {
        let entries = self.fields.take(key).and_then(|value| value.entries(self.report)).unwrap_or_default();
        let text = |entry: &KeyedValue<'_>, report: &mut MistakeReport| {
            Some((entry.name.to_owned(), entry.value.read(report, |s| text_within(s, max))?))
        };
        entries.iter().filter_map(|entry| text(entry, self.report)).collect()
    }

    /// True if the value of `key` is a mapping with keys.
    pub fn has_mapping(&mut self, key: &'static str) -> bool {
        self.fields.take(key).is_some_and(|value| value.is_mapping())
    }

    /// Reads the mapping `key` with a reader of its own, which is finished afterwards.
    pub fn mapping<T>(&mut self, key: &'static str, read: impl FnOnce(&mut SectionReader<'_, 't>) -> T) -> T {
        let fields = self.fields.section(key, self.report);
        self.inner(fields, read)
    }

    /// Reads each entry of the mapping `key`, by name, with a reader of its own.
    pub fn each<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&str, &mut SectionReader<'_, 't>) -> T,
    ) -> Vec<T> {
        let entries = self.fields.take(key).and_then(|value| value.entries(self.report)).unwrap_or_default();
        let mut each = Vec::new();
        for entry in entries {
            let fields = Mapping::new(&entry.value, self.report);
            each.push(self.inner(fields, |reader| read(entry.name, reader)));
        }
        each
    }

    /// Reads each entry of a section whose keys are names, with a reader of its own. Entries are no settings: a comparison of
    /// configurations does not show their values.
    pub fn entries<T>(
        &mut self,
        mut read: impl FnMut(&str, &mut SectionReader<'_, 't>) -> Option<T>,
    ) -> Vec<T> {
        let mut entries = Vec::new();
        for entry in self.fields.take_all() {
            let name = check_name(entry.name).map_err(|error| {
                entry.report(self.report, sentence(&error));
            });
            let fields = Mapping::new(&entry.value, self.report);
            let values = self.found.values.len();
            let entry = self.inner(fields, |reader| read(entry.name, reader));
            self.found.values.truncate(values);
            entries.extend(entry.filter(|_| name.is_ok()));
        }
        entries
    }

    /// Reports a key that is missing, with `help`.
    pub fn require(&mut self, key: &'static str, help: &str) {
        drop(self.fields.require(key, help, self.report));
    }

    /// Refuses keys that stand at the wrong place, with the reason. They are known keys.
    pub fn refuse(&mut self, keys: &[&'static str], reason: &str) {
        self.fields.refuse(keys, reason, self.report);
        keys.iter().for_each(|key| drop(self.fields.take_entry(key)));
    }

    /// Refuses keys that there were once, with the reason. They are no known keys.
    pub fn refuse_gone(&mut self, keys: &[&'static str], reason: &str) {
        self.fields.refuse(keys, reason, self.report);
    }

    /// Reports a mistake of the section, or of the mapping, itself.
    pub fn report_here(&mut self, reason: impl Into<String>) {
        self.fields.report_here(self.report, reason);
    }

    /// Reports a mistake of field `key` at its value, or at the mapping if the field is absent.
    pub fn report(&mut self, key: &str, reason: impl Into<String>) {
        self.fields.report(key, self.report, reason);
    }

    /// Shows a value with a form of its own to the comparison of configurations, by a text that differs if it does.
    pub fn show_whole(&mut self, key: &str, applies: Applies, text: String) {
        let path = self.fields.path_of(key);
        self.found.values.push(ShownValue { path, applies, text: ShownText::Whole(text) });
    }

    fn inner<T>(&mut self, fields: Mapping<'t>, read: impl FnOnce(&mut SectionReader<'_, 't>) -> T) -> T {
        let (overrides, before) = (self.overrides, self.before);
        let found =
            SectionFound { values: std::mem::take(&mut self.found.values), ..SectionFound::default() };
        let report = &mut *self.report;
        let mut reader = SectionReader { fields, overrides, report, before, found };
        let read = read(&mut reader);
        self.found.values = reader.finish().values;
        read
    }

    fn value<T>(
        &mut self,
        setting: &FeatureSetting,
        parse: impl Fn(Scalar<'_>) -> Result<T, String>,
    ) -> Option<T> {
        let from_file = self.fields.read(setting.key, self.report, &parse);
        self.given(setting, parse).or(from_file)
    }

    /// The value that a flag or a variable gives.
    fn given<T>(
        &mut self,
        setting: &FeatureSetting,
        parse: impl Fn(Scalar<'_>) -> Result<T, String>,
    ) -> Option<T> {
        let path = self.fields.path_of(setting.key);
        self.overrides.given.at(&setting.outside(), &path).read(&path, self.report, parse)
    }

    /// The value, or the default.
    fn value_or_default<T>(
        &mut self,
        setting: &FeatureSetting,
        parse: impl Fn(Scalar<'_>) -> Result<T, String>,
    ) -> Option<T> {
        let default = || parse(Scalar { text: setting.default, quoted: false }).ok();
        self.value(setting, &parse).or_else(default)
    }

    fn show(&mut self, setting: &FeatureSetting, text: String) {
        self.show_as(setting, ShownText::Written(text));
    }

    fn show_as(&mut self, setting: &FeatureSetting, text: ShownText) {
        let path = self.fields.path_of(setting.key);
        self.found.values.push(ShownValue { path, applies: setting.applies, text });
    }

    /// Reports the keys that nobody has read.
    pub(super) fn finish(self) -> SectionFound {
        self.fields.finish(self.report);
        self.found
    }
}

/// The periods of rates.
const fn spans() -> RangeInclusive<Micros> {
    Micros(1)..=LONGEST_SPAN
}
