//! docs/coming-from/: the configuration of each page is valid, and its commands print what stands there.

use std::fs;

use super::recipes::{block, printed, without_times};

#[test]
fn pages_for_users_of_other_limiters_are_what_is_run() {
    let folder = format!("{}/docs/coming-from", env!("CARGO_MANIFEST_DIR"));
    let mut pages = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        let console = block(&page, "console");
        let printed = printed(block(&page, "yaml"), console, "weir ");
        assert_eq!(without_times(&printed), without_times(console), "{}", path.display());
        pages += 1;
    }
    assert_eq!(pages, 7);
}
