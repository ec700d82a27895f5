//! Values on a metrics page.

use std::str::FromStr;

/// Finds the value of a series: a metric with its labels.
pub fn find<T: FromStr>(page: &str, series: &str) -> Option<T> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Returns the value of a series that must be on the page.
pub fn value<T: FromStr>(page: &str, series: &str) -> T {
    find(page, series).unwrap_or_else(|| panic!("no {series} in {page}"))
}
