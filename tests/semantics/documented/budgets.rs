//! docs/budgets.md: its configuration is valid, and its commands print what stands there.

use super::recipes::{block, printed, without_times};

const TEXT: &str = include_str!("../../../docs/budgets.md");

#[test]
fn the_page_is_what_is_run() {
    let console = block(TEXT, "console");
    let printed = printed(block(TEXT, "yaml"), console, "weir ");
    assert_eq!(without_times(&printed), without_times(console), "{printed}");
}
