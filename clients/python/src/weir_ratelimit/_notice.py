"""Log lines, at most one a minute of each kind."""

from __future__ import annotations

import logging

from ._errors import OutageError, WeirError

_log = logging.getLogger("weir_ratelimit")
_INTERVAL = 60.0
#: What is worth a line of what becomes of a settlement.
_SETTLEMENTS = {
    "late": (logging.WARNING, "settled after the hold has ended: give a longer hold_for (settlements: %d)"),
    "unknown": (logging.WARNING, "settled without a hold: the named costs were charged in full (settlements: %d)"),
    "dropped": (logging.WARNING, "settlements were dropped, and what they held comes back (settlements: %d)"),
    "mistake": (logging.ERROR, "a settlement was refused, and is not repeated (settlements: %d): %s"),
}


class Notice:
    """What goes on without an error that a caller sees, so somebody must be told."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def outage(self, now: float, outage: OutageError) -> None:
        """Records an outage, and logs it if the server refuses the credentials."""
        if outage.code != "UNAUTHENTICATED":
            return
        count = self._count(now, "credentials")
        if count:
            _log.error("weir refuses the credentials of this client, the policy answers (calls: %d)", count)

    def settlement(self, now: float, event: str, error: WeirError | None) -> None:
        """Records what has become of a settlement, and logs what is not as it should be."""
        level, text = _SETTLEMENTS.get(event, (0, ""))
        count = self._count(now, event) if text else 0
        if count:
            _log.log(level, text, count, *([error] if error else []))

    def _count(self, now: float, kind: str) -> int:
        """Returns the number for a line that is due, or 0."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if now < self._due.get(kind, float("-inf")):
            return 0
        self._due[kind] = now + _INTERVAL
        return self._counts.pop(kind)


def warn_of_fork(variable: str) -> None:
    """Logs that a program has forked with a setting under which gRPC hangs."""
    _log.warning("this process was forked with %s set, gRPC may hang: unset it", variable)
