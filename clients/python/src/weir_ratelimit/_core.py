"""What both clients share: settings, breaker, log lines, telemetry, and how an outage is answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ._breaker import Breaker
from ._decision import Decision, policy_decision
from ._errors import ClosedError, MistakeError, OutageError, WeirError
from ._notice import Notice
from ._options import Policy, Settings
from ._telemetry import Recorded, Telemetry
from ._token import Headers

#: gRPC's own deadline is later than the client's timer: it would drop an answer that has arrived while the process was
#: stalled.
DEADLINE_AFTER_TIMER = 1.0


class Core:
    """The state of a client without its channel."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self.headers = Headers(settings.token)
        self._breaker = Breaker() if settings.breaker else None
        self._notice = Notice()
        self._telemetry: Telemetry | None = None
        self._begun = False
        self._clock = clock
        self.closed = False

    def begin(self, name: str = "weir.allow") -> Recorded | None:
        """Begins a call. OpenTelemetry is loaded at the first, so that a program can set up its SDK before."""
        if self.closed:
            raise ClosedError
        if not self._begun:
            self._begun = True
            self._telemetry = Telemetry.load() if self.settings.telemetry else None
        return self._telemetry.begin(name) if self._telemetry else None

    def refused(self) -> OutageError | None:
        """Returns the failure of a call that the breaker keeps back."""
        breaker = self._breaker
        if breaker is None or not breaker.is_open or breaker.admits(self._clock()):
            return None
        return breaker.open_error()

    def answered(self) -> None:
        """Records an answer of a server."""
        if self._breaker is not None and self._breaker.answered() and self._telemetry:
            self._telemetry.breaker(-1)

    def failed(self, failure: OutageError | MistakeError, policy: Policy) -> Decision:
        """Records what failed, and returns what the policy answers, or raises."""
        if isinstance(failure, MistakeError):
            self.answered()
            raise failure
        now = self._clock()
        self._notice.outage(now, failure)
        if self._breaker is not None and self._breaker.failed(now, failure) and self._telemetry:
            self._telemetry.breaker(1)
        return answer(policy, failure)

    @contextmanager
    def recorded(self, name: str) -> Iterator[Recorded | None]:
        """Records a lease or a meter that does not begin."""
        recorded = self.begin(name)
        try:
            yield recorded
        except BaseException as error:
            if recorded:
                recorded.failed(error)
            raise

    def outage(self, outage: OutageError, counted: bool) -> None:
        """Records an outage of a call beside decisions. One after the beginning (`counted`) belongs to no span."""
        self._notice.outage(self._clock(), outage)
        if counted and self._telemetry:
            self._telemetry.outage(outage)

    def settlement(self, event: str, error: WeirError | None = None) -> None:
        """Records what has become of a settlement."""
        self._notice.settlement(self._clock(), event, error)
        if self._telemetry:
            self._telemetry.settlement(event)

    @property
    def is_open(self) -> bool:
        """Whether the breaker keeps calls back."""
        return self._breaker is not None and self._breaker.is_open

    def close(self) -> bool:
        """Closes it, and returns whether it was open."""
        was_open, self.closed = not self.closed, True
        if was_open and self._breaker is not None and self._breaker.answered() and self._telemetry:
            self._telemetry.breaker(-1)
        return was_open


def answer(policy: Policy, failure: OutageError) -> Decision:
    """Returns what the policy answers, or raises."""
    if policy == "error":
        raise failure
    return policy_decision(policy == "allow", failure)


def late(timeout: float) -> OutageError:
    """Returns the failure of a call that had no answer in time."""
    return OutageError("DEADLINE_EXCEEDED", f"no answer within {timeout * 1000:g} ms")
