"""The messages of leases, and how both clients ask for one."""

from __future__ import annotations

import base64
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, get_args

from google.protobuf.message import DecodeError

from ._decision import Decision, policy_decision
from ._errors import LeaseRefusedError, MistakeError, OutageError
from ._messages import REASONS, load, message
from ._options import Policy, is_policy
from ._question import Defaults, check_attributes, check_size, check_texts, refuse
from ._wire import time_of

load("_lease_descriptors.binpb")
_AcquireRequest = message("weir.v1.AcquireRequest")
_AcquireResponse = message("weir.v1.AcquireResponse")
_RenewRequest = message("weir.v1.RenewRequest")
_RenewResponse = message("weir.v1.RenewResponse")
_ReleaseRequest = message("weir.v1.ReleaseRequest")

_SERVICE = "/weir.v1.ConcurrencyService"
ACQUIRE = f"{_SERVICE}/Acquire"
RENEW = f"{_SERVICE}/Renew"
RELEASE = f"{_SERVICE}/Release"

#: The time of an attempt of a call about a lease, in seconds.
ATTEMPT = 2.0
#: A release that no server answers is given up after so many attempts: the lease then ends by itself.
RELEASE_ATTEMPTS = 3
RELEASE_PAUSE = 0.1
_SHORTEST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_LONGEST_TIME = 10 * 365 * 86_400
_LARGEST_WEIGHT = (1 << 64) - 1

#: How the work under a lease went. `"dropped"`: a timeout or a refusal. `"ignored"`: its time says nothing.
WorkOutcome = Literal["success", "dropped", "ignored"]
_OUTCOMES = {"success": 1, "ignored": 2, "dropped": 3}


@dataclass(frozen=True, slots=True)
class Term:
    """How long a lease lasts: `ttl` seconds from when the call was sent that says so."""

    sent_at: float
    ttl: float

    @property
    def ends_at(self) -> float:
        """When others may hold its permits."""
        return self.sent_at + self.ttl

    @property
    def renew_at(self) -> float:
        """When it is renewed."""
        return self.sent_at + self.ttl / 3

    def attempt(self, now: float) -> float:
        """Returns the time of a renewal that begins now. It leaves what a late answer may take before the end."""
        return max(0.001, min(ATTEMPT, self.ends_at - now - 0.01))

    def after_failure(self, now: float) -> float:
        """Returns when a renewal is tried again that has failed: the outage may end before the lease does."""
        return now + min(1.0, self.ttl / 10)


class LeaseQuestion:
    """A question for a lease, and the messages about it. They have one id."""

    def __init__(
        self,
        defaults: Defaults,
        resource: str,
        consumer: str,
        weight: int = 1,
        ttl: timedelta | float | None = None,
        wait: timedelta | float = 0,
        strategy: str | None = None,
        attributes: Mapping[str, str] | None = None,
        on_failure: Policy | None = None,
    ) -> None:
        strategy = defaults.strategy if strategy is None else strategy
        policy = defaults.on_failure if on_failure is None else on_failure
        if not is_policy(policy):
            refuse("on_failure", on_failure, '"allow", "deny" or "error"')
        if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= _LARGEST_WEIGHT:
            refuse("weight", weight, "a whole number from 1 to 2^64 - 1")
        check_texts({"resource": resource, "consumer": consumer, "strategy": strategy})
        #: How long to wait for permits, and for a server, in seconds.
        self.wait = _seconds("wait", wait)
        self.policy: Policy = policy
        self._place: dict[str, Any] = {
            "resource": resource,
            "consumer": consumer,
            "strategy": strategy or "",
            "id": base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode(),
            "attributes": check_attributes(attributes),
        }
        self._ttl = {} if ttl is None else {"ttl": _duration(_seconds("ttl", ttl, above=True))}
        fields = {**self._place, **self._ttl, **({} if weight == 1 else {"weight": weight})}
        self.acquire: bytes = _AcquireRequest(**fields).SerializeToString()
        check_size(self.acquire)

    def renew(self) -> bytes:
        """Returns the message that renews it."""
        request: bytes = _RenewRequest(**self._place, **self._ttl).SerializeToString()
        return request

    def release(self, outcome: WorkOutcome) -> bytes:
        """Returns the message that releases it."""
        request: bytes = _ReleaseRequest(**self._place, outcome=_OUTCOMES[outcome]).SerializeToString()
        return request


@dataclass(frozen=True, slots=True)
class Acquired:
    """The answer to a question for a lease."""

    decision: Decision
    #: Nothing: the work may begin without a lease.
    ttl: float | None

    @property
    def final(self) -> bool:
        """Whether waiting for permits would not help."""
        return self.decision.allowed or self.decision.reason != "limited"


def acquired_of(answer: bytes) -> Acquired:
    """Reads the answer of a server."""
    read = _read(_AcquireResponse, answer)
    decision = Decision(
        read.allowed,
        "weir",
        REASONS.get(read.reason, "unknown"),
        degraded=read.degraded,
        limit=read.limit if read.HasField("limit") else None,
        remaining=read.remaining if read.HasField("remaining") else None,
        message=read.message or None,
    )
    is_lease = read.id and read.HasField("expires_after")
    return Acquired(decision, time_of(read.expires_after).total_seconds() if is_lease else None)


def renewed_of(answer: bytes, ttl: float) -> float | None:
    """Returns how long the lease lasts now, and nothing if it has ended."""
    read = _read(_RenewResponse, answer)
    if not read.held:
        return None
    return time_of(read.expires_after).total_seconds() if read.HasField("expires_after") else ttl


def decided(outcome: Acquired | OutageError, policy: Policy) -> Acquired:
    """Returns what a lease begins with, or raises."""
    if isinstance(outcome, OutageError):
        if policy == "error":
            raise outcome
        outcome = Acquired(policy_decision(policy == "allow", outcome), None)
    if not outcome.decision.allowed:
        raise LeaseRefusedError(outcome.decision)
    return outcome


def pauses() -> Iterator[float]:
    """Yields the pauses between two attempts: random, so that those who wait do not ask together."""
    pause = _SHORTEST_PAUSE
    while True:
        yield pause * (0.5 + random.random() / 2)  # noqa: S311
        pause = min(pause * 2, _LONGEST_PAUSE)


def checked(outcome: str) -> WorkOutcome:
    """Returns an outcome that is one."""
    if outcome not in get_args(WorkOutcome):
        refuse("outcome", outcome, '"success", "dropped" or "ignored"')
    return outcome  # type: ignore[return-value]


def outcome_of(error: type[BaseException] | None) -> WorkOutcome:
    """Returns the outcome of a body that ended with an error of this type."""
    if error is None:
        return "success"
    return "dropped" if issubclass(error, TimeoutError) else "ignored"


def _read(kind: Any, answer: bytes) -> Any:
    try:
        return kind.FromString(answer)
    except DecodeError as error:
        raise OutageError("INTERNAL", "the answer is no message", error) from error


def _seconds(field: str, time: object, *, above: bool = False) -> float:
    if isinstance(time, timedelta):
        time = time.total_seconds()
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time <= _LONGEST_TIME:
        refuse(field, time, "a time from 0 s to 10 years")
    if above and time == 0:
        raise MistakeError("INVALID_ARGUMENT", f"{field}: it is 0", field)
    return float(time)


def _duration(seconds: float) -> dict[str, int]:
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return {"seconds": whole, "nanos": micros * 1000}
