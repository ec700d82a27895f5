//! The same with the bound of calls, on a machine that does nothing else.

use super::{CALL, crowd};

#[tokio::test]
async fn calls_beside_a_crowd_of_slow_callers_end_in_time() {
    crowd(CALL).await;
}
