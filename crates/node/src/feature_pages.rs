//! Pages of features on the admin port.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::access::Rights;
use crate::card::CardSpec;

/// Fields of `/ui/data`, or the reason why the page cannot be shown now, as a sentence.
pub type PageFields<'a> = Pin<Box<dyn Future<Output = Result<Map<String, Value>, String>> + Send + 'a>>;

/// Fields of `/ui/data` that a feature collects.
pub trait PageSource: Send + Sync {
    /// Collects them, as far as a caller with these rights may see them.
    fn fields<'a>(&'a self, rights: Rights<'a>) -> PageFields<'a>;
}

/// Part of the page `/ui` of a feature.
#[derive(Debug)]
pub struct PageModule {
    /// Sections of the page, in HTML. Their classes `o1` to `o7` say where they stand.
    pub sections: &'static str,
    /// A script that draws fields of the data in them: it adds a function to `modules`.
    pub script: &'static str,
}

/// JSON of a feature, as far as a caller with these rights may see it.
pub type ShowJson = Arc<dyn Fn(Rights<'_>) -> Value + Send + Sync>;

/// Pages of features on the admin port. Clones share them.
#[derive(Clone, Default)]
pub struct FeaturePages {
    /// Cards of the page `/ui`.
    pub cards: Vec<&'static CardSpec>,
    /// Sections of the page `/ui`, with their scripts.
    pub modules: Vec<&'static PageModule>,
    /// Fields of `/ui/data` that are collected.
    pub sources: Vec<Arc<dyn PageSource>>,
    /// Pages of their own, by their paths. A caller needs the right `inspect`.
    pub paths: Vec<(&'static str, ShowJson)>,
}

impl FeaturePages {
    pub(crate) fn extend(&mut self, other: Self) {
        let Self { cards, modules, sources, paths } = other;
        self.cards.extend(cards);
        self.modules.extend(modules);
        self.sources.extend(sources);
        self.paths.extend(paths);
    }
}
