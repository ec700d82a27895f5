//! The columns of a table that fit: a screen that is too narrow loses columns, and no letters of those that are left.

/// Blanks between two columns.
const GAP: usize = 1;

/// A column: the width that it needs, and how important it is. The most important one is always shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) width: usize,
    /// 0 is the most important.
    pub(super) rank: usize,
}

/// The width that the texts of a column need, with its title.
pub(super) fn width_of<'a>(title: &str, texts: impl Iterator<Item = &'a str>) -> usize {
    let wide = |text: &str| text.chars().count();
    texts.map(wide).max().unwrap_or(0).max(wide(title))
}

/// The indices of the columns that fit into `width`, in their order: of two that do not fit together, the more important one.
pub(super) fn fitting(columns: &[Column], width: usize) -> Vec<usize> {
    let mut ranked: Vec<usize> = (0..columns.len()).collect();
    ranked.sort_by_key(|&place| columns.get(place).map(|column| column.rank));
    let (mut shown, mut used) = (Vec::new(), 0);
    for place in ranked {
        let Some(column) = columns.get(place) else { continue };
        let needs = used + column.width + if shown.is_empty() { 0 } else { GAP };
        if needs <= width || shown.is_empty() {
            (used, _) = (needs, shown.push(place));
        }
    }
    shown.sort_unstable();
    shown
}

/// The width that these columns use.
pub(super) fn used(columns: &[Column], shown: &[usize]) -> usize {
    let widths: usize = shown.iter().filter_map(|&place| columns.get(place)).map(|column| column.width).sum();
    widths + GAP * shown.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_columns_are_dropped_first() {
        let columns = [(13, 0), (25, 3), (8, 1), (8, 2), (20, 4)].map(|(width, rank)| Column { width, rank });
        assert_eq!(fitting(&columns, 100), [0, 1, 2, 3, 4]);
        assert_eq!(fitting(&columns, 77), [0, 1, 2, 3]);
        assert_eq!(fitting(&columns, 55), [0, 2, 3, 4], "what is narrower may still fit");
        assert_eq!(fitting(&columns, 31), [0, 2, 3]);
        assert_eq!(fitting(&columns, 5), [0], "a name that does not fit is cut by the terminal alone");
        assert_eq!(used(&columns, &[0, 2, 3]), 31);
    }
}
