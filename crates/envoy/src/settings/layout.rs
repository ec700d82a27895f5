//! How the directory of Envoy's files is laid out.

/// How a directory is laid out.
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

/// What precedes the text in the names of [`EnvoyLayout::Below`].
const BELOW: &str = "below ";

impl EnvoyLayout {
    /// The key in `envoy` under which a program gives the layout. No file has it.
    pub(super) const KEY: &'static str = "layout";
    /// The path of that key.
    pub(crate) const PATH: &'static str = "envoy.layout";
    /// How [`Dotted`](Self::Dotted) is given.
    pub(crate) const DOTTED: String = String::new();

    /// How [`Below`](Self::Below) is given.
    pub(crate) fn below(start: &str) -> String {
        format!("{BELOW}{start}")
    }

    /// Returns the layout that was given.
    pub(super) fn given(text: Option<&str>) -> Self {
        let below = |text: &str| text.strip_prefix(BELOW).map(|start| Self::Below(start.to_owned()));
        text.map_or(Self::Paths, |text| below(text).unwrap_or(Self::Dotted))
    }
}
