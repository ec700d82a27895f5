//! Lists of mappings, and mappings that may be absent.

use crate::fields::Mapping;

use super::SectionReader;

impl<'t> SectionReader<'_, 't> {
    /// Reads each item of the list `key` as a mapping, with a reader of its own. A list with more than `most` is a
    /// mistake, and empty then.
    pub fn items<T>(
        &mut self,
        key: &'static str,
        most: usize,
        mut read: impl FnMut(&mut SectionReader<'_, 't>) -> T,
    ) -> Vec<T> {
        let Some(value) = self.fields.take(key) else { return Vec::new() };
        let items = value.items(self.report).unwrap_or_default();
        if items.len() > most {
            value.report(self.report, format!("has {} entries: at most {most}", items.len()));
            return Vec::new();
        }
        let mut each = Vec::new();
        for item in &items {
            let fields = Mapping::new(item, self.report);
            each.push(self.inner(fields, &mut read));
        }
        each
    }

    /// Reads the list `key` of at most `most` texts of `max` bytes, with the reason against each; `None` if it is absent
    /// or an item is no text.
    pub fn checked_texts(
        &mut self,
        (key, help): (&'static str, &str),
        (most, what): (usize, &str),
        max: usize,
        check: impl Fn(&[String], &str) -> Result<(), String>,
    ) -> Option<Vec<String>> {
        let value = self.fields.require(key, help, self.report)?;
        let items = value.items(self.report)?;
        if items.len() > most {
            value.report(self.report, format!("has {} {what}: at most {most}", items.len()));
        }
        let mut texts: Vec<String> = Vec::new();
        for item in items {
            let text = item.read(self.report, |scalar| crate::values::text_within(scalar, max))?;
            if let Err(reason) = check(&texts, &text) {
                item.report(self.report, reason);
            }
            texts.push(text);
        }
        Some(texts)
    }

    /// Reads the mapping `key` as [`mapping`](Self::mapping) does, if it is in the file, or a setting of it is given.
    pub fn optional_mapping<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut SectionReader<'_, 't>) -> T,
    ) -> Option<T> {
        let fields = self.fields.section(key, self.report);
        let is_given = fields.is_present() || self.overrides.given.has_section(&self.fields.path_of(key));
        is_given.then(|| self.inner(fields, read))
    }

    /// True if the mapping was read as a whole, so that a key that is not there is missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.fields.is_whole()
    }

    /// Returns the number of mistakes so far, by which callers keep follow-up mistakes back.
    #[must_use]
    pub fn mistakes(&self) -> usize {
        self.report.len()
    }
}
