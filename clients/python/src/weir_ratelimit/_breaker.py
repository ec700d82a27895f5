"""The breaker: while no server answers, calls get the policy at once, and a few probes are sent."""

from __future__ import annotations

import threading

from ._errors import OutageError

_OUTAGES = 5
_SILENCE = 0.5
_SHORTEST_WAIT = 0.1
_LONGEST_WAIT = 1.0


class Breaker:
    """Counts outages since the last answer of a server. Times are in seconds of a clock that never steps back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outages = 0
        self._silent_since = 0.0
        self._last: OutageError | None = None
        self._wait = _SHORTEST_WAIT
        self._probe_at = 0.0
        #: Whether calls get the policy, except for probes.
        self.is_open = False

    def admits(self, now: float) -> bool:
        """Returns whether a call may be sent."""
        if not self.is_open:
            return True
        with self._lock:
            if not self.is_open:
                return True
            if now < self._probe_at:
                return False
            self._wait = min(self._wait * 2, _LONGEST_WAIT)
            self._probe_at = now + self._wait
            return True

    def open_error(self) -> OutageError:
        """Returns the failure of a call that is not sent. Its cause is the last outage."""
        return OutageError("UNAVAILABLE", "the breaker is open", self._last)

    def answered(self) -> bool:
        """Records an answer of a server: a decision or a mistake. Returns whether the breaker has closed."""
        if not self._outages and not self.is_open:
            return False
        with self._lock:
            was_open, self.is_open = self.is_open, False
            self._outages, self._last = 0, None
            return was_open

    def failed(self, now: float, outage: OutageError) -> bool:
        """Records an outage. Returns whether the breaker has opened."""
        with self._lock:
            if not self._outages:
                self._silent_since = now
            self._outages += 1
            # Without its traceback, which would keep the frames of the call alive.
            self._last = outage.with_traceback(None)
            if self.is_open or self._outages < _OUTAGES or now - self._silent_since < _SILENCE:
                return False
            self.is_open = True
            self._wait = _SHORTEST_WAIT
            self._probe_at = now + self._wait
            return True
