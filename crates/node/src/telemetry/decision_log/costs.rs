//! The costs by name of a line.

use weir_units::Micros;

use super::text::{key, number, quoted};

/// Costs by name of a call; for a settlement or a debit, the units that were used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedCosts {
    /// Name, units, and the least that may be granted instead; in the order of the names.
    costs: Vec<(Box<str>, u64, Option<u64>)>,
    /// Time for which to hold what is granted.
    hold_for: Option<Micros>,
}

impl LoggedCosts {
    /// The costs, sorted, so that equal calls have equal lines.
    pub fn new(mut costs: Vec<(Box<str>, u64, Option<u64>)>, hold_for: Option<Micros>) -> Self {
        costs.sort_unstable();
        Self { costs, hold_for }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        key(out, "costs");
        units(out, self.costs.iter().map(|(name, units, _)| (&**name, *units)));
        if self.costs.iter().any(|(.., least)| least.is_some()) {
            key(out, "at_least");
            units(out, self.costs.iter().filter_map(|(name, _, least)| Some((&**name, (*least)?))));
        }
        if let Some(Micros(span)) = self.hold_for {
            number(out, "hold_for_us", span);
        }
    }
}

fn units<'a>(out: &mut Vec<u8>, pairs: impl Iterator<Item = (&'a str, u64)>) {
    out.push(b'{');
    for (index, (name, units)) in pairs.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        quoted(out, name);
        out.push(b':');
        // Writing to a Vec cannot fail.
        let _ = serde_json::to_writer(&mut *out, &units);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_an_object_in_the_order_of_their_names() {
        let written = |costs: &[(&str, u64, Option<u64>)], hold_for| {
            let costs = costs.iter().map(|&(name, units, least)| (name.into(), units, least)).collect();
            let mut out = Vec::new();
            LoggedCosts::new(costs, hold_for).write(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            written(&[("usd", 7, None), ("output", 4096, Some(256))], Some(Micros(5))),
            r#","costs":{"output":4096,"usd":7},"at_least":{"output":256},"hold_for_us":5"#
        );
        assert_eq!(written(&[], None), r#","costs":{}"#);
    }
}
