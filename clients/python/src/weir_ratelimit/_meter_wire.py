"""The question of a meter, its settlement, and what was used."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Literal

from google.protobuf.message import DecodeError

from ._costs import Cost, checked_units
from ._decision import Decision
from ._errors import MistakeError, OutageError
from ._messages import message
from ._options import Policy
from ._question import Defaults, Question, check_attributes, encode, refuse

_SettleRequest = message("weir.v1.SettleRequest")
_SettleResponse = message("weir.v1.SettleResponse")

SETTLE = "/weir.v1.RateLimitService/Settle"
#: The name under which an estimate that is a number is counted.
NUMBER = "cost"
_OUTCOMES = {1: "settled", 2: "late", 3: "unknown"}
_LONGEST_HOLD = timedelta(days=1)

#: What a failed body settles if nothing was added: `"used"`, which is nothing, or `"keep"`, the estimate.
OnError = Literal["used", "keep"]
Estimate = Mapping[str, int | Cost] | int
#: Units by name.
Use = dict[str, int]


class MeterQuestion:
    """A question that holds an estimate, and the settlement that replaces it. They have one id."""

    def __init__(
        self,
        defaults: Defaults,
        resource: str,
        consumer: str,
        estimate: Estimate,
        hold_for: timedelta | float = timedelta(minutes=10),
        on_error: OnError = "used",
        strategy: str | None = None,
        attributes: Mapping[str, str] | None = None,
        headers: bool = False,
        timeout: timedelta | float | None = None,
        on_failure: Policy | None = None,
    ) -> None:
        is_number = not isinstance(estimate, Mapping)
        if is_number and (isinstance(estimate, bool) or not isinstance(estimate, int)):
            refuse("estimate", estimate, "a whole number, or a mapping of names to costs")
        if on_error not in ("used", "keep"):
            refuse("on_error", on_error, '"used" or "keep"')
        self.on_error: OnError = on_error
        #: The units of the estimate, by name.
        self.estimate: Use = {NUMBER: estimate} if is_number else dict(map(_units, estimate.items()))  # type: ignore
        self._is_number = is_number
        key = base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode()
        costs, cost = (None, self.estimate[NUMBER]) if is_number else (estimate, 1)
        self.hold_for = _hold(hold_for)
        self.asked: Question = encode(
            defaults,
            resource,
            consumer,
            cost=cost,
            strategy=strategy,
            attributes=attributes,
            id=key,
            headers=headers,
            timeout=timeout,
            on_failure=on_failure,
            costs=costs,  # type: ignore[arg-type]
            hold_for=self.hold_for,
        )
        self._place = {
            "resource": resource,
            "consumer": consumer,
            "strategy": (defaults.strategy if strategy is None else strategy) or "",
            "id": key,
            "attributes": check_attributes(attributes),
        }

    def settlement(self, used: Mapping[str, int]) -> bytes:
        """Returns the message that settles this use. A name that is absent counts as used as granted."""
        request = _SettleRequest(**self._place)
        if self._is_number:
            if NUMBER in used:
                request.cost = used[NUMBER]
        else:
            request.costs.update(used)
        settlement: bytes = request.SerializeToString()
        return settlement

    def nothing(self) -> Use:
        """Returns the use that gives back all that is held."""
        return dict.fromkeys(self.estimate, 0)


class MeterState:
    """What a meter was granted, and what was used of it so far."""

    def __init__(self, decision: Decision, question: MeterQuestion) -> None:
        #: The decision that admits the work.
        self.decision = decision
        self._question = question
        self._lock = threading.Lock()
        self._added: Use = {}
        self._settled: Use | None = None

    def granted(self, name: str = NUMBER) -> int | None:
        """Returns the units that a cost was granted. None: a policy or an allow list answered, so nothing is held."""
        asked = self._question.estimate.get(name)
        if asked is None:
            refuse("name", name, f"one of {', '.join(self._question.estimate)}")
        if self.decision.held_for is None:
            return None
        # A limit in shadow mode that would not admit grants nothing.
        granted = [limit.granted for limit in self.decision.limits if limit.cost == asked and limit.granted]
        return min(granted, default=asked)

    def add(self, **used: int) -> None:
        """Adds what was used. The name of an estimate that is a number is `cost`."""
        self._check(used)
        with self._lock:
            if self._settled is not None:
                raise MistakeError("FAILED_PRECONDITION", "the meter is settled already")
            for name, units in used.items():
                self._added[name] = self._added.get(name, 0) + units

    def _final(self, used: Use | None, failed: bool = False) -> Use | None:
        """Ends the meter, and returns what is settled. Nothing, if it was settled before."""
        with self._lock:
            if self._settled is not None:
                return None
            if used is not None:
                settled = {**self._added, **used}
            elif self._added or not failed:
                settled = dict(self._added)
            else:
                settled = self._question.nothing() if self._question.on_error == "used" else {}
            # Without a hold, only costs that are named are charged.
            if self.decision.held_for is None:
                settled = {**self._question.estimate, **settled}
            self._settled = settled
            return settled

    def _explicit(self, used: Use) -> Use:
        """Checks what `settle` is given, and ends the meter with it."""
        self._check(used)
        settled = self._final(used)
        if settled is None:
            raise MistakeError("FAILED_PRECONDITION", "the meter is settled already")
        return settled

    def _check(self, used: Use) -> None:
        for name, units in used.items():
            if name not in self._question.estimate:
                refuse("used", name, f"a cost of the estimate: {', '.join(self._question.estimate)}")
            checked_units(name, units)


def settled_of(answer: bytes) -> str:
    """Returns what a settlement has found, in the words of the metric."""
    try:
        return _OUTCOMES.get(_SettleResponse.FromString(answer).outcome, "settled")
    except DecodeError as error:
        raise OutageError("INTERNAL", "the answer is no message", error) from error


def _units(item: tuple[str, int | Cost]) -> tuple[str, int]:
    name, cost = item
    return name, cost.cost if isinstance(cost, Cost) else cost


def _hold(time: timedelta | float) -> timedelta:
    if isinstance(time, int | float) and not isinstance(time, bool) and 0 < time <= _LONGEST_HOLD.total_seconds():
        time = timedelta(seconds=time)
    if not isinstance(time, timedelta) or not timedelta(0) < time <= _LONGEST_HOLD:
        refuse("hold_for", time, "a time above 0 s and at most a day")
    return time
