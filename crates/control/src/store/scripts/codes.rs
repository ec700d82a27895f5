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
    use weir_testing::script_names::{definitions, lists};

    use super::control_status;
    use crate::store::scripts::numbers::DOUBLES;

    macro_rules! lua {
        ($($name:literal)+) => {
            concat!($(include_str!(concat!("../../../../../lua/control/", $name, ".lua"))),+)
        };
    }

    #[test]
    fn both_sides_have_the_same_numbers() {
        let defined = definitions(lua!("write" "put" "poll"));
        for (name, number) in control_status::ALL {
            let there = defined.get(name).map(Vec::as_slice).unwrap_or_default();
            assert!(!there.is_empty(), "{name}");
            assert!(there.iter().all(|there| *there == *number as f64), "{name}: {there:?}, {number}");
        }
    }

    #[test]
    fn both_sides_have_the_same_order() {
        let read = lists(lua!("start" "put"));
        for names in DOUBLES {
            let names = names.join(" ");
            assert!(read.iter().any(|list| list.contains(&names)), "nothing reads {names}, but {read:#?}");
        }
    }
}
