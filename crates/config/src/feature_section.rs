//! The section of a feature in the configuration.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use super::listen::ListenAddress;
use super::table::{Applies, SettingChange, TlsConfig};
use super::{ClientAuth, Secret};

/// The settings that a feature has read.
pub trait SectionSettings: Any + Debug + Send + Sync {}

impl<T: Any + Debug + Send + Sync> SectionSettings for T {}

/// The configuration of a feature that is on.
#[derive(Debug, Clone)]
pub struct FeatureSection {
    pub(super) name: &'static str,
    pub(super) settings: Arc<dyn SectionSettings>,
    pub(super) values: Vec<ShownValue>,
    /// The port that the feature listens on, if it does.
    pub port: Option<FeaturePort>,
    /// The name of this node, if the section has it.
    pub node: Option<String>,
}

/// A port of a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeaturePort {
    /// The path of the setting with the address.
    pub setting: &'static str,
    /// The path of the section with its TLS.
    pub tls_section: &'static str,
    /// The address.
    pub address: ListenAddress,
    /// TLS; without it the port is plain text.
    pub tls: Option<TlsConfig>,
    /// The protocols that TLS offers (ALPN).
    pub protocols: &'static [&'static [u8]],
    /// The bound of connections.
    pub max_connections: usize,
}

/// A value of a section, to be compared with the one after a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownValue {
    pub(super) path: String,
    pub(super) applies: Applies,
    pub(super) text: ShownText,
}

/// The text by which two values are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShownText {
    /// As a file would write it.
    Written(String),
    /// A text that differs if the value does.
    Whole(String),
    /// A secret, which is never shown.
    Secret(Option<Secret>),
}

impl ShownText {
    /// Returns the text for people, if there is one.
    fn written(self) -> Option<String> {
        match self {
            Self::Written(text) => Some(text),
            Self::Whole(_) | Self::Secret(_) => None,
        }
    }
}

impl FeatureSection {
    /// Creates what no file says.
    #[must_use]
    pub fn new(name: &'static str, settings: Arc<dyn SectionSettings>) -> Self {
        Self { name, settings, values: Vec::new(), port: None, node: None }
    }

    /// Returns the settings, if they have this type.
    #[must_use]
    pub fn settings<T: 'static>(&self) -> Option<&T> {
        let settings: &dyn Any = &*self.settings;
        settings.downcast_ref()
    }

    /// Returns the key of the section.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if the port asks clients for certificates.
    pub(super) fn asks_for_certificates(&self) -> bool {
        let tls = self.port.as_ref().and_then(|port| port.tls.as_ref());
        tls.is_some_and(|tls| tls.client_auth != ClientAuth::None)
    }

    /// Returns the port, if it is plain text and not this machine's alone.
    pub(super) fn exposed(&self) -> Option<String> {
        let FeaturePort { setting, address: ListenAddress::Tcp(address), tls: None, .. } =
            self.port.as_ref()?
        else {
            return None;
        };
        (!address.ip().to_canonical().is_loopback()).then(|| format!("{setting} {address}"))
    }
}

/// Reports the values that differ between the sections of two configurations.
pub(super) fn changes(before: &[FeatureSection], after: &[FeatureSection], changes: &mut Vec<SettingChange>) {
    let values = |sections: &[FeatureSection]| -> Vec<ShownValue> {
        sections.iter().flat_map(|section| section.values.clone()).collect()
    };
    let (before, after) = (values(before), values(after));
    let text = |all: &[ShownValue], path: &str| {
        all.iter().find(|value| value.path == path).map(|value| value.text.clone())
    };
    let gone = before.iter().filter(|value| text(&after, &value.path).is_none());
    let own = changes.len();
    for value in after.iter().chain(gone) {
        let (one, next) = (text(&before, &value.path), text(&after, &value.path));
        if one != next {
            let mut change = SettingChange::whole(&value.path, value.applies);
            change.values = one.zip(next).and_then(|(one, next)| one.written().zip(next.written()));
            changes.push(change);
        }
    }
    // A mapping that comes or goes is named without its keys.
    let whole: Vec<String> = changes.iter().skip(own).map(|change| format!("{}.", change.path)).collect();
    let is_within = |path: &str| whole.iter().any(|mapping| path.starts_with(mapping.as_str()));
    changes.retain(|change| change.values.is_some() || !is_within(&change.path));
}
