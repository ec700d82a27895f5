//! Settings that variables give, unless they are given natively.

use weir_config::ConfigOverrides;

/// Settings that are mapped, unless they are given natively.
pub(super) struct Mapped {
    pub(super) native: ConfigOverrides,
    pub(super) overrides: ConfigOverrides,
    pub(super) notes: Vec<String>,
}

impl Mapped {
    /// Sets a setting by its name or path. `label` is the variable.
    pub(super) fn set(&mut self, name: &str, label: &str, text: impl Into<String>) {
        if self.native.has(name) {
            let native = name.to_uppercase();
            self.notes.push(format!("WEIR_{native} takes precedence over {label}, which is set too"));
            return;
        }
        self.overrides = std::mem::take(&mut self.overrides).with_label(name, label, text);
    }

    pub(super) fn set_some(&mut self, name: &str, label: &str, text: Option<String>) {
        if let Some(text) = text {
            self.set(name, label, text);
        }
    }
}
