//! Numeric codes in requests to the scripts and in their replies. They have the same names in `lua/queues/`.

use weir_store::codes;

use crate::model::ItemFate;

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

codes! {
    /// Ways in which items left their queue: the names of fields in the archive.
    fate {
        ACKED = 1,
        DEAD_LETTERED = 2,
        DROPPED = 3,
        AGED_OUT = 4,
    }
}

codes! {
    /// Parts of payloads that the archive keeps.
    payload {
        NONE = 0,
        DIGEST = 1,
        HEAD = 2,
    }
}

/// Returns the code of a fate.
pub(super) const fn fate_code(fate: ItemFate) -> u64 {
    match fate {
        ItemFate::Acked => fate::ACKED,
        ItemFate::DeadLettered => fate::DEAD_LETTERED,
        ItemFate::Dropped => fate::DROPPED,
        ItemFate::AgedOut => fate::AGED_OUT,
    }
}

/// Returns the fate of a code.
pub(super) const fn fate_of(code: u64) -> Option<ItemFate> {
    Some(match code {
        fate::ACKED => ItemFate::Acked,
        fate::DEAD_LETTERED => ItemFate::DeadLettered,
        fate::DROPPED => ItemFate::Dropped,
        fate::AGED_OUT => ItemFate::AgedOut,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use weir_testing::script_names::{definitions, lists};

    use super::{enqueue_status, fate, payload, redelivery, settle_op};
    use crate::store::scripts::numbers::DOUBLES;

    macro_rules! lua {
        ($($path:literal)+) => {
            concat!($(include_str!(concat!("../../../../../lua/queues/", $path, ".lua"))),+)
        };
    }

    /// A script, its codes, and those that it never names because they are the remaining case.
    type Codes = (&'static str, &'static [(&'static str, u64)], &'static [&'static str]);

    #[test]
    fn both_sides_have_the_same_numbers() {
        let codes: [Codes; 5] = [
            (lua!("enqueue"), enqueue_status::ALL, &[]),
            (lua!("settle"), settle_op::ALL, &["NACK"]),
            (lua!("take"), redelivery::ALL, &["FIRST"]),
            (lua!("settle" "dead" "room"), fate::ALL, &[]),
            (lua!("archive"), payload::ALL, &["NONE", "HEAD"]),
        ];
        for (text, codes, unnamed) in codes {
            let defined = definitions(text);
            for (name, number) in codes {
                let there = defined.get(name).map(Vec::as_slice).unwrap_or_default();
                assert_eq!(there.is_empty(), unnamed.contains(name), "{name}");
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
