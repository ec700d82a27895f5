//! The rule that allowed the question before. Questions that arrive together mostly name one resource and one strategy,
//! and only their consumers are left to check.

use weir_config::{AccessRight, RuleList};

use super::caller_rights::{CallerRights, NamedFields};
use super::compiled_rule::CompiledRule;
use super::refusals::Refused;
use super::rights::Rights;

/// The rule that allowed the question before, and what this question named.
#[derive(Debug, Clone, Copy)]
struct AllowedNames<'q> {
    rights: &'q CallerRights,
    rule: &'q CompiledRule,
    resource: &'q str,
    strategy: &'q str,
}

/// The checks of one right for questions of one round, all under the same rules.
#[derive(Debug)]
pub(crate) struct RoundRights<'q> {
    right: AccessRight,
    last: Option<AllowedNames<'q>>,
}

impl<'q> RoundRights<'q> {
    pub(crate) const fn new(right: AccessRight) -> Self {
        Self { right, last: None }
    }

    /// Checks a question of a caller with these rights. `strategy_of` finds the strategy of the resource.
    #[inline]
    pub(crate) fn check<'s>(
        &mut self,
        rights: Rights<'q>,
        named: NamedFields<'q>,
        strategy_of: impl FnOnce(&str) -> Option<&'s str>,
    ) -> Result<(), Refused> {
        let Some(known) = rights.of_caller() else { return Ok(()) };
        if let Some(last) = &self.last
            && last.is_about(known, &named)
            && last.rule.lists(RuleList::Consumers, named.consumer)
        {
            return Ok(());
        }
        self.check_anew(known, named, strategy_of)
    }

    fn check_anew<'s>(
        &mut self,
        rights: &'q CallerRights,
        named: NamedFields<'q>,
        strategy_of: impl FnOnce(&str) -> Option<&'s str>,
    ) -> Result<(), Refused> {
        if named.inline {
            return Rights::known(rights).check(self.right, named, strategy_of);
        }
        let rule = rights.rule_for(self.right, named, strategy_of);
        let rule = rule.ok_or_else(|| rights.refuse(self.right.row().name))?;
        let NamedFields { resource, strategy, .. } = named;
        self.last = Some(AllowedNames { rights, rule, resource, strategy });
        Ok(())
    }
}

impl AllowedNames<'_> {
    #[inline]
    fn is_about(&self, rights: &CallerRights, named: &NamedFields<'_>) -> bool {
        std::ptr::eq(self.rights, rights)
            && !named.inline
            && is_same(self.resource, named.resource)
            && is_same(self.strategy, named.strategy)
    }
}

/// True if both texts are equal. Pointers are compared first, because they mostly match. Empty texts are not
/// compared: some C libraries are slow even for 0 bytes.
#[inline]
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && (one.is_empty() || one.as_ptr() == other.as_ptr() || one == other)
}
