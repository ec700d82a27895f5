"""Leases for threads: permits that are held while work is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ._decision import Decision
from ._errors import ClosedError, LeaseLostError, MistakeError, OutageError, WeirError
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
    decided,
    outcome_of,
    pauses,
    renewed_of,
)

#: Makes one call: the path of a method, a message, and the time for it in seconds.
Call = Callable[[str, bytes, float], bytes]
#: Runs a function beside the caller.
Later = Callable[[Callable[[], None]], None]


class Lease:
    """Permits that are held. `with` releases them at the end of the body, and says how it went."""

    def __init__(self, decision: Decision) -> None:
        #: The decision that granted it.
        self.decision = decision
        #: Set when the lease is lost: others may hold its permits, so the work must stop.
        self.lost = threading.Event()
        self._lock = threading.Lock()
        self._outcome: WorkOutcome | None = None

    @property
    def held(self) -> bool:
        """Whether the work may go on: the lease is neither lost nor released."""
        return self._outcome is None and not self.lost.is_set()

    def release(self, outcome: WorkOutcome = "success") -> None:
        """Gives the permits back, once. A lease that was lost is released as `"ignored"`.

        An outage is not raised: the lease then ends by itself.
        """
        outcome = checked(outcome)
        with self._lock:
            if self._outcome is not None:
                return
            self._outcome = "ignored" if self.lost.is_set() else outcome
        self._give_back(self._outcome)

    def __enter__(self) -> Self:
        if self.lost.is_set():
            self.release()
            raise LeaseLostError
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release(outcome_of(kind))

    def _give_back(self, outcome: WorkOutcome) -> None:
        """Tells the server. What the policy has granted is not known there."""

    def _lose(self) -> None:
        with self._lock:
            if self._outcome is None:
                self.lost.set()


class HeldLease(Lease):
    """A lease of a server. A thread renews it, and does not keep the process alive."""

    def __init__(self, decision: Decision, question: LeaseQuestion, call: Call, term: Term) -> None:
        super().__init__(decision)
        self._question, self._call, self._term = question, call, term
        self._ended = threading.Event()
        threading.Thread(target=self._renew, name="weir-lease", daemon=True).start()

    def _renew(self) -> None:
        due = self._term.renew_at
        while not self._ended.wait(max(0.0, min(due, self._term.ends_at) - time.monotonic())):
            now = time.monotonic()
            if now >= self._term.ends_at:
                return self._lose()
            try:
                answer = self._call(RENEW, self._question.renew(), self._term.attempt(now))
                ttl = renewed_of(answer, self._term.ttl)
            except WeirError:
                # An outage may end, and a mistake be mended, before the lease ends.
                due = self._term.after_failure(time.monotonic())
                continue
            if ttl is None:
                return self._lose()
            self._term = Term(now, ttl)
            due = self._term.renew_at
        return None

    def _give_back(self, outcome: WorkOutcome) -> None:
        self._ended.set()
        give_back(self._question, self._call, outcome)


def acquire(question: LeaseQuestion, call: Call, later: Later) -> Lease:
    """Acquires a lease. While permits are missing or no server answers, it asks again under the same id."""
    try:
        sent_at, outcome = _ask(question, call)
    except WeirError:
        raise
    except BaseException:
        # Ctrl-C: the answer may be on its way, and what it grants is given back.
        later(lambda: give_back(question, call, "ignored"))
        raise
    if isinstance(outcome, OutageError):
        # The answer may be lost, and the lease be held all the same.
        later(lambda: give_back(question, call, "ignored"))
    begun = decided(outcome, question.policy)
    if begun.ttl is None:
        return Lease(begun.decision)
    return HeldLease(begun.decision, question, call, Term(sent_at, begun.ttl))


def _ask(question: LeaseQuestion, call: Call) -> tuple[float, Acquired | OutageError]:
    """Returns the last answer, and when its question was sent."""
    until = time.monotonic() + question.wait
    for pause in pauses():
        sent_at = time.monotonic()
        outcome: Acquired | OutageError
        try:
            outcome = acquired_of(call(ACQUIRE, question.acquire, ATTEMPT))
        except OutageError as outage:
            outcome = outage
        left = until - time.monotonic()
        if left <= 0 or (isinstance(outcome, Acquired) and outcome.final):
            break
        time.sleep(min(left, pause))
    return sent_at, outcome


def give_back(question: LeaseQuestion, call: Call, outcome: WorkOutcome) -> None:
    """Releases a lease, or gives up."""
    for _ in range(RELEASE_ATTEMPTS):
        try:
            call(RELEASE, question.release(outcome), ATTEMPT)
        except (MistakeError, ClosedError):
            return
        except OutageError:
            time.sleep(RELEASE_PAUSE)
        else:
            return
