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
    use weir_testing::script_names::{definitions, lists};

    use super::{lease_op, lease_outcome, lease_status};
    use crate::store::scripts::DOUBLES;

    macro_rules! lua {
        ($name:literal) => {
            include_str!(concat!("../../../../../lua/leases/", $name, ".lua"))
        };
    }

    /// Codes, and the one that the script never names because it is the remaining case.
    type Codes = (&'static [(&'static str, u64)], &'static str);

    #[test]
    fn both_sides_have_the_same_numbers() {
        let codes: [Codes; 3] =
            [(lease_op::ALL, ""), (lease_outcome::ALL, "SUCCESS"), (lease_status::ALL, "FAILED")];
        let defined = definitions(lua!("call"));
        for (codes, unnamed) in codes {
            for (name, number) in codes {
                let there = defined.get(name).map(Vec::as_slice).unwrap_or_default();
                assert_eq!(there.is_empty(), *name == unnamed, "{name}");
                assert!(there.iter().all(|there| *there == *number as f64), "{name}: {there:?}, {number}");
            }
        }
    }

    #[test]
    fn both_sides_have_the_same_order() {
        let read = lists(lua!("start"));
        for names in DOUBLES {
            let names = names.join(" ");
            assert!(read.iter().any(|list| list.contains(&names)), "nothing reads {names}, but {read:#?}");
        }
    }
}
