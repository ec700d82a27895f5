//! Numeric codes in requests to scripts and in their replies. They have the same names in `lua/`.

use crate::scripts::codes;

codes! {
    /// Operations of a decision. `ONCE`: idempotent under an id, by a record of the answer; for a refund by a marker.
    op {
        CHARGE = 1,
        PEEK = 2,
        REFUND = 3,
        RESET = 4,
        FORCE = 5,
        AT_MOST = 6,
        RESERVE = 7,
        REFUND_ONCE = 8,
        CHARGE_ONCE = 9,
        FORCE_ONCE = 10,
        AT_MOST_ONCE = 11,
        RESERVE_ONCE = 12,
        CANCEL = 13,
        COUNT_PARTS = 14,
        HOLD = 15,
        SETTLE = 16,
    }
}

codes! {
    /// Causes of a denial.
    cause {
        FITS = 0,
        COUNT = 1,
        MIN_GAP = 2,
        ABOVE = 3,
    }
}

codes! {
    /// Status of a decision over limits with costs of their own.
    budget_status {
        DENIED = 0,
        ALLOWED = 1,
        FAILED = 2,
        OTHER_CONTENTS = 3,
        TOO_MANY_ENDS = 4,
    }
}

codes! {
    /// Outcomes of a settlement.
    budget_outcome {
        NONE = 0,
        SETTLED = 1,
        LATE = 2,
        UNKNOWN = 3,
    }
}

codes! {
    /// Bucket variants. 0 is a plain meter.
    bucket {
        QUEUE = 1,
        CHARGE_AFTER = 2,
    }
}

codes! {
    /// Alignment of windows.
    window {
        ALIGNED = 0,
        ANCHORED = 1,
        MONTH = 2,
        SPREAD = 3,
    }
}

#[cfg(test)]
mod tests;
