//! Numeric codes in requests to the scripts and in their replies. They have the same names in `lua/leases/`.

use weir_store::codes;

codes! {
    /// Operations on leases.
    lease_op {
        ACQUIRE = 1,
        RENEW = 2,
        RELEASE = 3,
        SAMPLE = 4,
    }
}

codes! {
    /// Outcomes of the work under a lease.
    lease_outcome {
        SUCCESS = 1,
        IGNORED = 2,
        DROPPED = 3,
    }
}

codes! {
    /// Result codes of a lease call.
    lease_status {
        FAILED = 0,
        HELD = 1,
        KNOWN = 2,
        RELEASED = 3,
        NOT_HELD = 4,
        OTHER_WEIGHT = 5,
        LIMITED = 6,
        NEVER = 7,
        FULL = 8,
        SAMPLED = 9,
    }
}

#[cfg(test)]
mod tests {
    use weir_testing::script_names::{assert_codes, assert_lists};

    use super::{lease_op, lease_outcome, lease_status};
    use crate::store::scripts::DOUBLES;

    #[test]
    fn both_sides_have_the_same_numbers() {
        let call = include_str!("../../../../../lua/leases/call.lua");
        assert_codes(call, lease_op::ALL, &[]);
        assert_codes(call, lease_outcome::ALL, &["SUCCESS"]);
        assert_codes(call, lease_status::ALL, &["FAILED"]);
    }

    #[test]
    fn both_sides_have_the_same_order() {
        assert_lists(include_str!("../../../../../lua/leases/start.lua"), DOUBLES);
    }
}
