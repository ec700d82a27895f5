//! The gRPC methods that a node knows, with the rights to them: those of the table of rights, and those of features.

use std::collections::HashMap;
use std::sync::Arc;

use weir_config::{AccessRight, RIGHTS, RightSet};

/// A gRPC method of a feature.
#[derive(Debug, Clone, Copy)]
pub struct MethodSpec {
    /// The path, `/package.Service/Method`.
    pub path: &'static str,
    /// The rights of which a caller needs one.
    pub rights: &'static [AccessRight],
}

#[derive(Debug, Clone)]
pub(crate) struct KnownMethods(Arc<HashMap<&'static str, RightSet>>);

impl MethodSpec {
    /// Creates the method with this path, which needs one of these rights.
    pub const fn new(path: &'static str, rights: &'static [AccessRight]) -> Self {
        Self { path, rights }
    }
}

impl KnownMethods {
    /// Returns those of the table of rights, with more of features.
    pub(crate) fn new<'a>(more: impl IntoIterator<Item = &'a MethodSpec>) -> Self {
        let mut methods: HashMap<&'static str, RightSet> = HashMap::new();
        let mut add = |path: &'static str, right: AccessRight| {
            let rights = methods.entry(path).or_default();
            *rights = rights.with(right);
        };
        for row in &RIGHTS {
            row.methods.iter().for_each(|path| add(path, row.right));
        }
        for MethodSpec { path, rights } in more {
            rights.iter().for_each(|right| add(path, *right));
        }
        Self(Arc::new(methods))
    }

    /// Returns the rights of which a method needs one; `None` for an unknown method.
    pub(crate) fn rights_to(&self, path: &str) -> Option<RightSet> {
        self.0.get(path).copied()
    }

    /// Returns the name of a method, without its service; `None` for an unknown method.
    pub(crate) fn name_of(&self, path: &str) -> Option<&'static str> {
        self.0.get_key_value(path)?.0.rsplit('/').next()
    }
}

impl Default for KnownMethods {
    fn default() -> Self {
        Self::new([])
    }
}
