"""Log lines about what the policy answers, at most one a minute of each kind."""

from __future__ import annotations

import logging

from ._errors import OutageError

_log = logging.getLogger("weir_ratelimit")
_INTERVAL = 60.0


class Notice:
    """Credentials that the server refuses: the site goes on, so somebody must be told."""

    def __init__(self) -> None:
        self._due = float("-inf")
        self._count = 0

    def outage(self, now: float, outage: OutageError) -> None:
        """Records an outage, and logs it if the server refuses the credentials."""
        if outage.code != "UNAUTHENTICATED":
            return
        self._count += 1
        if now < self._due:
            return
        self._due = now + _INTERVAL
        _log.error("weir refuses the credentials of this client, the policy answers (calls: %d)", self._count)


def warn_of_fork(variable: str) -> None:
    """Logs that a program has forked with a setting under which gRPC hangs."""
    _log.warning("this process was forked with %s set, gRPC may hang: unset it", variable)
