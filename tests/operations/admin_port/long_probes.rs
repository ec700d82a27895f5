//! The same with the deadline that probes have, on a machine that does nothing else.

use super::{PROBE_DEADLINE, probes_beside_callers};

#[tokio::test]
async fn probes_are_answered_within_their_deadline() {
    probes_beside_callers(PROBE_DEADLINE).await;
}
