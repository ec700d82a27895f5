"""What a lease does, for both clients: it is acquired, renewed and released."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf
from typing import Protocol

from ._decision import Decision
from ._errors import ClosedError, MistakeError, OutageError, WeirError
from ._flow import Ask, Flow, Pause
from ._lease_wire import (
    ACQUIRE,
    ATTEMPT,
    RELEASE,
    RELEASE_ATTEMPTS,
    RELEASE_PAUSE,
    RENEW,
    Acquired,
    LeaseQuestion,
    Term,
    WorkOutcome,
    acquired_of,
    checked,
    pauses,
    renewed_of,
)


class Event(Protocol):
    """An event of threads or of asyncio."""

    def is_set(self) -> bool: ...

    def set(self) -> None: ...


class LeaseState:
    """The decision of a lease, and whether it is held, lost or released."""

    lost: Event

    def __init__(self, decision: Decision) -> None:
        #: The decision that granted it.
        self.decision = decision
        self._lock = threading.Lock()
        self._outcome: WorkOutcome | None = None
        self._ends_at = inf

    @property
    def held(self) -> bool:
        """Whether the work may go on: the lease is neither lost nor released.

        It ends by the clock: a process that was stalled may ask before what renews the lease has run again.
        """
        return self._is_open() and time.monotonic() < self._ends_at

    def _is_open(self) -> bool:
        return self._outcome is None and not self.lost.is_set()

    def _extend(self, ends_at: float) -> None:
        self._ends_at = ends_at

    def _end(self, outcome: str) -> WorkOutcome | None:
        """Ends the lease, and returns what the server is told. Nothing: it was released before."""
        valid = checked(outcome)
        with self._lock:
            if self._outcome is not None:
                return None
            self._outcome = "ignored" if not self.held else valid
            return self._outcome

    def _set_lost(self) -> bool:
        """Records that the lease is lost. Returns false if it was not held."""
        with self._lock:
            if not self._is_open():
                return False
            self.lost.set()
            return True


def ask(question: LeaseQuestion) -> Flow[tuple[float, Acquired | OutageError]]:
    """Asks for a lease, and while permits are missing or no server answers, again under the same id.

    Returns the last answer, and when its question was sent.
    """
    until = time.monotonic() + question.wait
    for pause in pauses():
        sent_at = time.monotonic()
        outcome: Acquired | OutageError
        try:
            outcome = acquired_of((yield Ask(ACQUIRE, question.acquire, ATTEMPT)))
        except OutageError as outage:
            outcome = outage
        left = until - time.monotonic()
        if left <= 0 or (isinstance(outcome, Acquired) and outcome.final):
            break
        yield Pause(min(left, pause))
    return sent_at, outcome


def renew(question: LeaseQuestion, term: Term, extend: Callable[[float], None]) -> Flow[None]:
    """Renews a lease until it is lost. `extend` is told the end of each new term."""
    due = term.renew_at
    while True:
        yield Pause(max(0.0, min(due, term.ends_at) - time.monotonic()))
        now = time.monotonic()
        if now >= term.ends_at:
            return
        try:
            ttl = renewed_of((yield Ask(RENEW, question.renew(), term.attempt(now))), term.ttl)
        except WeirError:
            # An outage may end, and a mistake be mended, before the lease ends.
            due = term.after_failure(time.monotonic())
            continue
        if ttl is None:
            return
        term = Term(now, ttl)
        extend(term.ends_at)
        due = term.renew_at


def give_back(question: LeaseQuestion, outcome: WorkOutcome) -> Flow[None]:
    """Releases a lease, or gives up."""
    for _ in range(RELEASE_ATTEMPTS):
        try:
            yield Ask(RELEASE, question.release(outcome), ATTEMPT)
        except (MistakeError, ClosedError):
            return
        except OutageError:
            yield Pause(RELEASE_PAUSE)
        else:
            return
