//! Layouts of the directory with Envoy's files.

/// Layout of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EnvoyLayout {
    /// All files count, under their paths.
    #[default]
    Paths,
    /// All files count. Their names are their paths below the directory, with dots between the parts.
    Dotted,
    /// Only files count whose dotted name begins with this text and a dot.
    Below(String),
}

/// The start of the text that gives [`EnvoyLayout::Below`].
const BELOW: &str = "below ";

impl EnvoyLayout {
    /// The key in `envoy` under which a program gives the layout. No file has it.
    pub(super) const KEY: &'static str = "layout";
    /// The path of that key.
    pub(crate) const PATH: &'static str = "envoy.layout";
    /// The text that gives [`Dotted`](Self::Dotted).
    pub(crate) const DOTTED: String = String::new();

    /// Returns the text that gives [`Below`](Self::Below).
    pub(crate) fn below(start: &str) -> String {
        format!("{BELOW}{start}")
    }

    /// Returns the layout that was given.
    pub(super) fn given(text: Option<&str>) -> Self {
        let below = |text: &str| text.strip_prefix(BELOW).map(|start| Self::Below(start.to_owned()));
        text.map_or(Self::Paths, |text| below(text).unwrap_or(Self::Dotted))
    }
}
