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
    use weir_testing::script_names::{assert_codes, assert_lists};

    use super::{enqueue_status, fate, payload, redelivery, settle_op};
    use crate::store::scripts::numbers::DOUBLES;

    macro_rules! lua {
        ($($path:literal)+) => {
            concat!($(include_str!(concat!("../../../../../lua/queues/", $path, ".lua"))),+)
        };
    }

    #[test]
    fn both_sides_have_the_same_numbers() {
        assert_codes(lua!("enqueue"), enqueue_status::ALL, &[]);
        assert_codes(lua!("settle"), settle_op::ALL, &["NACK"]);
        assert_codes(lua!("take"), redelivery::ALL, &["FIRST"]);
        assert_codes(lua!("settle" "dead" "room"), fate::ALL, &[]);
        assert_codes(lua!("archive"), payload::ALL, &["NONE", "HEAD"]);
    }

    #[test]
    fn both_sides_have_the_same_order() {
        assert_lists(lua!("start" "settle"), DOUBLES);
    }
}
