"""Costs by name: what a question asks of the limits with `cost: NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._decision import Decision
from ._errors import MistakeError
from ._question import refuse

#: Servers before this version have neither costs by name nor settlements.
LEAST_VERSION = "0.2.0"
_LARGEST = (1 << 52) - 1


@dataclass(frozen=True, slots=True)
class Cost:
    """A named cost of a call: its units, and the least part of them that is still of use.

    With `at_least`, what fits is granted, but not less than this. Without it, all is granted or the call is denied.
    """

    cost: int
    at_least: int | None = None


Costs = Mapping[str, int | Cost]


def put_costs(request: Any, costs: Costs) -> None:
    """Checks costs and puts them into a question."""
    if not isinstance(costs, Mapping) or not all(isinstance(name, str) for name in costs):
        refuse("costs", costs, "a mapping of names to numbers or to Cost")
    for name, given in costs.items():
        cost = given if isinstance(given, Cost) else Cost(given)
        request.costs[name].cost = checked_units(f"costs[{name!r}]", cost.cost)
        if cost.at_least is not None:
            if checked_units(f"costs[{name!r}].at_least", cost.at_least) not in range(1, cost.cost + 1):
                refuse("costs", given, "a cost with at_least from 1 to the cost")
            request.costs[name].at_least = cost.at_least


def checked_units(field: str, units: object) -> int:
    """Returns units that are a whole number within the bound of the server."""
    if isinstance(units, bool) or not isinstance(units, int) or not 0 <= units <= _LARGEST:
        raise MistakeError("INVALID_ARGUMENT", f"{field}: {units!r} is not a whole number from 0 to 2^52 - 1", "costs")
    return units


def check_answer(decision: Decision, has_costs: bool, holds: bool) -> Decision:
    """Returns a decision that regards costs and the hold. A server that does not know them leaves them out unread."""
    if not decision.allowed or decision.degraded or decision.reason == "allow_list":
        return decision
    if has_costs and not any(limit.cost for limit in decision.limits):
        raise too_old("costs by name")
    if holds and decision.held_for is None:
        raise too_old("holds")
    return decision


def too_old(what: str) -> MistakeError:
    """Returns the mistake of asking a server of an older version."""
    return MistakeError("UNIMPLEMENTED", f"the server has no {what}: weir {LEAST_VERSION} or later is needed")
