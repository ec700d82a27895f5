//! The bound of rules. Domains are counted one after the other; one with which there are too many is left out.

use super::MAX_DESCRIPTORS_PER_RULE;

/// Rules and descriptors, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Descriptors with a limit.
    pub rules: usize,
    /// All descriptors.
    pub descriptors: usize,
}

impl RuleCount {
    /// Adds a descriptor.
    pub fn add(&mut self, has_limit: bool) {
        self.descriptors += 1;
        self.rules += usize::from(has_limit);
    }

    /// Adds all that `other` has.
    pub fn add_all(&mut self, other: Self) {
        self.descriptors += other.descriptors;
        self.rules += other.rules;
    }

    /// The reason why there are more than `max_rules` allows: a sentence's end about the domain that was added last.
    #[must_use]
    pub fn excess(self, max_rules: usize) -> Option<String> {
        let Self { rules, descriptors } = self;
        let most = max_rules.saturating_mul(MAX_DESCRIPTORS_PER_RULE);
        if rules > max_rules {
            return Some(format!("more than {max_rules} rules in all domains: raise `envoy.max_rules`"));
        }
        (descriptors > most).then(|| {
            format!("more than {most} descriptors in all domains, with and without a limit: raise `envoy.max_rules`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_are_bounded_while_few_descriptors_lead_to_them() {
        let count = |rules, descriptors| RuleCount { rules, descriptors }.excess(5);
        assert_eq!((count(5, 50), count(0, 0)), (None, None));
        assert!(count(6, 6).unwrap().starts_with("more than 5 rules"));
        assert!(count(1, 51).unwrap().starts_with("more than 50 descriptors"));
    }
}
