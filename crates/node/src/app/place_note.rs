//! The note of a node that has no place among those that count a strategy.

use std::time::{Duration, Instant};

use prost_types::Timestamp;
use weir_store::approximate::PlaceNote;
use weir_store::backend::{Problem, Since};

/// Says until when a place that was lost can be blocked. More nodes than places are the reason only after that. `called`
/// says how features call their limits.
pub(super) fn without_place(
    note: PlaceNote,
    called: impl FnOnce(&str) -> Option<&'static str>,
    now: Instant,
) -> Problem {
    let PlaceNote { strategy, nodes, since, blocked_for } = note;
    let of = called(&strategy).map_or_else(|| format!("strategy `{strategy}`"), str::to_owned);
    let (begun, lasted) = (Since::from_instant(since), now.saturating_duration_since(since));
    let (reason, remedy) = if lasted < Duration::from(blocked_for) {
        let seconds =
            i64::try_from(begun.wall.0.saturating_add(blocked_for.0) / 1_000_000).unwrap_or(i64::MAX);
        let until = Timestamp { seconds, nanos: 0 };
        (
            format!(
                "all {nodes} places of its `approximate` are taken; that of a node that crashed is blocked for two windows, \
                 until {until} at the latest"
            ),
            format!("wait until then, unless more than {nodes} nodes run"),
        )
    } else {
        (
            format!("all {nodes} places of its `approximate` have been taken for longer than two windows"),
            "set `approximate.nodes` to the number of nodes".to_owned(),
        )
    };
    Problem {
        what: format!(
            "Redis decides every call of {of} for this node, at a smaller limit, because it has no place"
        ),
        since: begun,
        reason,
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use weir_time::clock::monotonic;
    use weir_units::Micros;

    use super::*;

    #[test]
    fn more_nodes_than_places_are_the_reason_only_after_two_windows() {
        let since = monotonic();
        let note = PlaceNote { strategy: "s".into(), nodes: 3, since, blocked_for: Micros::from_secs(120) };
        let early = without_place(note.clone(), |_| None, since + Duration::from_secs(119));
        assert!(
            early.reason.contains("until 20") && !early.remedy.contains("approximate.nodes"),
            "{early:?}"
        );
        let late = without_place(note, |_| Some("rules"), since + Duration::from_secs(120));
        assert!(
            late.what.contains("of rules for")
                && late.remedy.contains("set `approximate.nodes`")
                && !late.reason.contains("until"),
            "{late:?}"
        );
    }
}
