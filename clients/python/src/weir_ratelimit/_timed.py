"""Calls with a timeout that holds, whatever the server and the network do."""

from __future__ import annotations

from math import inf
from typing import Any

#: An answer that has arrived is read within this time after the timer.
_GRACE = 0.01
#: The same, if the timer was late by more than `_LATE`: the whole process was stalled, and has to catch up.
_GRACE_AFTER_STALL = 0.1
_LATE = 0.02


class Timed:
    """A call, and when its time is over."""

    __slots__ = ("call", "due", "expired", "grace")

    def __init__(self, due: float, call: Any = None) -> None:
        self.call = call
        self.due = due
        #: An answer that has arrived while this process was stalled is still read.
        self.grace = True
        self.expired = False


def take_overdue(calls: set[Timed], now: float) -> tuple[list[Any], float]:
    """Takes the calls whose time is over out of a set, and returns them, and when the next may be."""
    overdue = []
    for timed in list(calls):
        if timed.due > now:
            continue
        if timed.grace:
            late = now - timed.due
            timed.grace, timed.due = False, now + (_GRACE_AFTER_STALL if late > _LATE else _GRACE)
        else:
            timed.expired = True
            calls.discard(timed)
            overdue.append(timed.call)
    return overdue, min((timed.due for timed in calls), default=inf)
