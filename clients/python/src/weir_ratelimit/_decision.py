"""Decisions: what Weir answered, or what the policy answered in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from datetime import timedelta
from functools import cache
from math import ceil
from typing import Any, Literal

from ._errors import DeniedError, OutageError

_STATUS = {"never": 403, "deny_list": 403, "store_failure": 503, "policy": 503}


@dataclass(frozen=True, slots=True)
class Http:
    """The status and the headers of an HTTP answer."""

    #: The status of a denial. `None`: the call is allowed.
    status: int | None
    #: The headers, also of an allowed call.
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class LimitStatus:
    """The answer of one limit of the strategy."""

    name: str
    allowed: bool
    limit: int
    remaining: int
    retry_after: timedelta | None = None
    reset_after: timedelta | None = None
    cause: str | None = None
    #: The units that were asked of this limit, if the strategy has costs by name.
    cost: int = 0
    #: The units that it granted.
    granted: int = 0
    #: The units of it that open holds have, after this decision.
    held: int = 0
    #: Whether use and holds are at or above its `near_limit`.
    near_limit: bool = False
    #: Whether this call took the use over it.
    crossed_near_limit: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. What is not set is `None`, never 0. A decision is true if the call is allowed."""

    allowed: bool
    #: `"policy"` exactly if no decision of a server was used.
    source: Literal["weir", "policy"]
    #: `"ok"`, `"limited"`, `"never"`, `"deny_list"`, `"allow_list"`, `"store_failure"`, `"banned"`, `"full"`,
    #: `"policy"`, or `"unknown"`: a reason that this version does not know.
    reason: str
    #: Whether a failure policy answered: that of the server, or that of this client.
    degraded: bool = False
    limit: int | None = None
    remaining: int | None = None
    #: The time after which the same call would pass, if waiting helps.
    retry_after: timedelta | None = None
    reset_after: timedelta | None = None
    #: How long to hold the call before it starts.
    wait: timedelta | None = None
    #: How much was charged, if the question has `at_most` or an `id`.
    granted: int | None = None
    #: Whether this call was charged, if the question has an `id`.
    applied: bool | None = None
    denied_by: tuple[str, ...] = ()
    limits: tuple[LimitStatus, ...] = ()
    #: The limit that the headers describe.
    binding: str | None = None
    #: A sentence for people, if the call is denied.
    message: str | None = None
    #: Headers for an HTTP answer, if the question asks for them.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Whether the node decided by itself, with a part of each limit.
    local: bool = False
    #: Whether nodes count this strategy on their own.
    approximate: bool = False
    #: How long what is granted is held, if the question has a hold.
    held_for: timedelta | None = None
    #: The failure that the policy answered.
    failure: OutageError | None = None

    def __bool__(self) -> bool:
        return self.allowed

    def http(self) -> Http:
        """Returns the status and the headers of an HTTP answer, by the table of docs/http.md."""
        headers = dict(self.headers)
        if self.allowed:
            return Http(None, headers)
        has_retry = any(name.lower() == "retry-after" for name in headers)
        if self.retry_after is not None and not has_retry:
            headers["Retry-After"] = str(max(1, ceil(self.retry_after.total_seconds())))
        return Http(_STATUS.get(self.reason, 429), headers)

    def raise_if_denied(self) -> None:
        """Raises DeniedError if the call is denied."""
        if not self.allowed:
            raise DeniedError(self)


@cache
def maker(kind: type[Any]) -> Callable[..., Any]:
    """Returns what makes an object of a frozen class from all its fields, in their order.

    The constructor of a frozen class calls a function for each field, which takes a tenth of the CPU of a whole call.
    That of a class with the same slots that is not frozen takes a sixth of it. The object then gets its own class.
    """
    names = [one.name for one in fields(kind)]
    open_kind: Any = make_dataclass(kind.__name__, names, slots=True)

    def make(*values: Any) -> Any:
        made = open_kind(*values)
        made.__class__ = kind
        return made

    return make


def policy_decision(allowed: bool, failure: OutageError) -> Decision:
    """Returns the answer of the policy to a failure."""
    message = None if allowed else "The rate limit cannot be checked"
    return Decision(allowed, "policy", "policy", degraded=True, message=message, failure=failure)
