//! Result codes of live control.

use weir_store::codes;

codes! {
    /// Result codes of live control.
    control_status {
        WRITTEN = 1,
        STALE = 2,
        FULL = 3,
        MISSING = 4,
        SINCE = 5,
        EVERYTHING = 6,
    }
}

#[cfg(test)]
mod tests {
    use weir_testing::script_names::{assert_codes, assert_lists};

    use super::control_status;
    use crate::store::scripts::numbers::DOUBLES;

    macro_rules! lua {
        ($($name:literal)+) => {
            concat!($(include_str!(concat!("../../../../../lua/control/", $name, ".lua"))),+)
        };
    }

    #[test]
    fn both_sides_have_the_same_numbers() {
        assert_codes(lua!("write" "put" "poll"), control_status::ALL, &[]);
    }

    #[test]
    fn both_sides_have_the_same_order() {
        assert_lists(lua!("start" "put"), DOUBLES);
    }
}
