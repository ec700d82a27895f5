//! The comments of the descriptors.

use std::collections::HashMap;

use prost_types::FileDescriptorProto;

/// The comments of a file, by the paths of what they are about.
pub(super) struct Comments<'f>(HashMap<&'f [i32], String>);

impl<'f> Comments<'f> {
    pub(super) fn new(file: &'f FileDescriptorProto) -> Self {
        let locations = file.source_code_info.iter().flat_map(|info| &info.location);
        let comment =
            |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned();
        Self(locations.map(|it| (&it.path[..], comment(it.leading_comments()))).collect())
    }

    /// Returns a comment on one line; empty if there is none.
    pub(super) fn at(&self, path: &[i32]) -> String {
        self.0.get(path).cloned().unwrap_or_default()
    }
}
