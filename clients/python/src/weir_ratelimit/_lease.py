"""Leases for threads: permits that are held while work is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ._decision import Decision
from ._errors import LeaseLostError, OutageError, WeirError
from ._flow import Call, run
from ._lease_flow import LeaseState, ask, give_back, renew
from ._lease_wire import LeaseQuestion, Term, WorkOutcome, decided, outcome_of

#: Runs a function beside the caller.
Later = Callable[[Callable[[], None]], None]


class Lease(LeaseState):
    """Permits that are held. `with` releases them at the end of the body, and says how it went."""

    lost: threading.Event

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        #: Set when the lease is lost: others may hold its permits, so the work must stop.
        self.lost = threading.Event()

    def release(self, outcome: WorkOutcome = "success") -> None:
        """Gives the permits back, once. A lease that was lost is released as `"ignored"`.

        An outage is not raised: the lease then ends by itself.
        """
        told = self._end(outcome)
        if told is not None:
            self._give_back(told)

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
        self._set_lost()


class HeldLease(Lease):
    """A lease of a server. A thread renews it, and does not keep the process alive."""

    def __init__(self, decision: Decision, question: LeaseQuestion, call: Call, term: Term) -> None:
        super().__init__(decision)
        self._extend(term.ends_at)
        self._question, self._call = question, call
        self._released = threading.Event()
        threading.Thread(target=self._renew, args=(term,), name="weir-lease", daemon=True).start()

    def _renew(self, term: Term) -> None:
        try:
            run(renew(self._question, term, self._extend), self._call, self._wait)
        except _Released:
            return
        self._lose()

    def _wait(self, seconds: float) -> None:
        if self._released.wait(seconds):
            raise _Released

    def _give_back(self, outcome: WorkOutcome) -> None:
        self._released.set()
        run(give_back(self._question, outcome), self._call, time.sleep)


class _Released(Exception):
    """Ends the renewal of a lease."""


def acquire(question: LeaseQuestion, call: Call, later: Later) -> Lease:
    """Acquires a lease."""

    def release() -> None:
        run(give_back(question, "ignored"), call, time.sleep)

    try:
        sent_at, outcome = run(ask(question), call, time.sleep)
    except WeirError:
        raise
    except BaseException:
        # Ctrl-C: the answer may be on its way, and what it grants is given back.
        later(release)
        raise
    if isinstance(outcome, OutageError):
        # The answer may be lost, and the lease be held all the same.
        later(release)
    begun = decided(outcome, question.policy)
    if begun.ttl is None:
        return Lease(begun.decision)
    return HeldLease(begun.decision, question, call, Term(sent_at, begun.ttl))
