//! The last changes of a store, for nodes that ask for those after their position.

use std::collections::VecDeque;

use super::record::ControlPosition;
use super::{MAX_POLLED_BYTES, MAX_POLLED_CHANGES, MAX_POLLED_RECORDS};

/// Answer of a store to a node that sends its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesSince<T> {
    /// Changes since the position, in order. They may be incomplete: `position` is that of the last one.
    Since {
        /// The records, or the new and lifted bans.
        records: Vec<T>,
        /// The new position of the node.
        position: ControlPosition,
    },
    /// The store does not know the position: the node must read everything.
    Everything {
        /// The position of the store.
        position: ControlPosition,
    },
}

/// Returns the changes after `position`, in a store whose last change is at `last`, within the bounds of an answer.
pub(super) fn since<T: Clone>(
    changes: &VecDeque<(ControlPosition, Vec<T>)>,
    (position, last): (ControlPosition, ControlPosition),
    size: impl Fn(&T) -> usize,
) -> ChangesSince<T> {
    let first = if position == last {
        changes.len()
    } else {
        match changes.binary_search_by_key(&position, |(position, _)| *position) {
            Ok(place) => place + 1,
            Err(_) => return ChangesSince::Everything { position: last },
        }
    };
    let (mut records, mut reached, mut bytes) = (Vec::new(), position, 0);
    for (position, written) in changes.range(first..).take(MAX_POLLED_CHANGES) {
        let is_full = !records.is_empty() && records.len() + written.len() > MAX_POLLED_RECORDS;
        if bytes >= MAX_POLLED_BYTES || is_full {
            break;
        }
        bytes += written.iter().map(&size).sum::<usize>();
        records.extend(written.iter().cloned());
        reached = *position;
    }
    ChangesSince::Since { records, position: reached }
}
