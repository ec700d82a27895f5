//! The rights of a question's caller, and their check.

use std::sync::{Arc, LazyLock};

use weir_config::AccessRight;
use weir_grpc::CallContext;

use super::authenticated::Authenticated;
use super::caller_rights::{CallerRights, NamedFields};
use super::names::CallerName;
use super::refusals::Refused;

/// The rights of a question's caller. There is no default: whoever makes a question says whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Rights<'a>(
    /// `None` is everybody: the server has no identity, or the question is its own.
    Option<&'a CallerRights>,
);

/// A caller of another kind than ours. Unreachable, and refused.
static NOBODY: LazyLock<CallerRights> =
    LazyLock::new(|| CallerRights::new(CallerName::one(CallerName::ANONYMOUS), Vec::new(), Arc::default()));

impl<'a> Rights<'a> {
    /// All rights: for servers without identity, and for questions of this process itself.
    pub const ALL: Rights<'static> = Rights(None);

    /// Returns the rights of a call. A server with identity has checked it, and one without has not.
    #[inline]
    pub fn from_context(context: &'a CallContext) -> Self {
        Self(
            context
                .caller
                .as_ref()
                .map(|caller| caller.get().map_or_else(|| &*NOBODY, Authenticated::rights)),
        )
    }

    /// Returns the rights of a known caller.
    pub const fn known(rights: &'a CallerRights) -> Self {
        Self(Some(rights))
    }

    /// The name for logs; empty on servers without identity.
    pub fn name(self) -> &'a str {
        self.0.map_or("", |rights| rights.name().shown())
    }

    /// A number of the caller: of its name, or of the connection of a caller without one.
    #[inline]
    #[must_use]
    pub fn caller(self) -> u32 {
        self.0.and_then(CallerRights::number).unwrap_or_else(weir_grpc::current_connection)
    }

    /// True if everything is allowed, so that no check is needed.
    #[inline]
    pub const fn is_all(self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub(super) const fn of_caller(self) -> Option<&'a CallerRights> {
        self.0
    }

    /// Checks a right on what a question names. `strategy_of` finds the strategy of the resource.
    pub(crate) fn check<'s>(
        self,
        right: AccessRight,
        named: NamedFields<'_>,
        strategy_of: impl FnOnce(&str) -> Option<&'s str>,
    ) -> Result<(), Refused> {
        self.decide(|rights| rights.may(right, named, strategy_of), right)
    }

    /// Checks one of several rights on a queue.
    pub fn check_queue(self, rights: &[AccessRight], queue: &str) -> Result<(), Refused> {
        let first = rights.first().copied().unwrap_or(AccessRight::Take);
        self.decide(|_| self.may_queue(rights, queue), first)
    }

    /// True if the caller has one of these rights to a queue. Nothing is refused.
    pub fn may_queue(self, rights: &[AccessRight], queue: &str) -> bool {
        self.0.is_none_or(|known| rights.iter().any(|right| known.may_queue(*right, queue)))
    }

    /// Checks the right to ask for a domain of Envoy's, and to give back hits of it.
    pub fn check_domain(self, domain: &str, gives_back: bool) -> Result<(), Refused> {
        self.decide(|rights| rights.may_envoy(domain, gives_back), AccessRight::Envoy)
    }

    /// Checks that the caller has a right at all.
    pub fn check_any(self, right: AccessRight) -> Result<(), Refused> {
        self.decide(|rights| rights.any().has(right), right)
    }

    /// True if an answer of statistics may have this name. `None` is what the row does not name.
    #[must_use]
    pub fn may_show(self, strategy: &str, resource: Option<&str>, consumer: Option<&str>) -> bool {
        self.0.is_none_or(|rights| rights.may_show(AccessRight::Usage, strategy, resource, consumer))
    }

    /// True if an answer to who inspects may have this name. `None` is what the row does not name.
    #[must_use]
    pub fn may_inspect(self, strategy: &str, resource: Option<&str>, consumer: Option<&str>) -> bool {
        self.0.is_none_or(|rights| rights.may_show(AccessRight::Inspect, strategy, resource, consumer))
    }

    #[inline]
    fn decide(self, may: impl FnOnce(&CallerRights) -> bool, right: AccessRight) -> Result<(), Refused> {
        match self.0 {
            Some(rights) if !may(rights) => Err(rights.refuse(right.row().name)),
            _ => Ok(()),
        }
    }
}
