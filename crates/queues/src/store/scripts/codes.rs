//! Numeric codes in requests to the scripts and in their replies. They have the same names in `lua/queues/`.

use weir_store::codes;

codes! {
    /// Result codes of an enqueue.
    enqueue_status {
        FAILED = 0,
        ADDED = 1,
        FULL = 2,
        NEVER = 3,
        OTHER = 4,
    }
}

codes! {
    /// Operations that settle items.
    settle_op {
        ACK = 1,
        NACK = 2,
        EXTEND = 3,
    }
}

codes! {
    /// Causes of a redelivery.
    redelivery {
        FIRST = 0,
        NACKED = 1,
        EXPIRED = 2,
    }
}

#[cfg(test)]
mod tests {
    use weir_testing::script_names::{definitions, lists};

    use super::{enqueue_status, redelivery, settle_op};
    use crate::store::scripts::numbers::DOUBLES;

    macro_rules! lua {
        ($($path:literal)+) => {
            concat!($(include_str!(concat!("../../../../../lua/queues/", $path, ".lua"))),+)
        };
    }

    /// A script, its codes, and the one that it never names because it is the remaining case.
    type Codes = (&'static str, &'static [(&'static str, u64)], &'static str);

    #[test]
    fn both_sides_have_the_same_numbers() {
        let codes: [Codes; 3] = [
            (lua!("enqueue"), enqueue_status::ALL, ""),
            (lua!("settle"), settle_op::ALL, "NACK"),
            (lua!("take"), redelivery::ALL, "FIRST"),
        ];
        for (text, codes, unnamed) in codes {
            let defined = definitions(text);
            for (name, number) in codes {
                let there = defined.get(name).map(Vec::as_slice).unwrap_or_default();
                assert_eq!(there.is_empty(), *name == unnamed, "{name}");
                assert!(there.iter().all(|there| *there == *number as f64), "{name}: {there:?}, {number}");
            }
        }
    }

    #[test]
    fn both_sides_have_the_same_order() {
        let read = lists(lua!("start" "settle"));
        for names in DOUBLES {
            let names = names.join(" ");
            assert!(read.iter().any(|list| list.contains(&names)), "nothing reads {names}, but {read:#?}");
        }
    }
}
