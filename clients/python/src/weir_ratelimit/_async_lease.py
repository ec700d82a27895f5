"""Leases for asyncio: permits that are held while work is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Self

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
Call = Callable[[str, bytes, float], Awaitable[bytes]]
#: Runs a task beside the caller.
Later = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class AsyncLease:
    """Permits that are held. `async with` releases them at the end of the body, and says how it went.

    A body whose lease is lost is cancelled, and LeaseLostError is raised: others may hold its permits.
    """

    def __init__(self, decision: Decision) -> None:
        #: The decision that granted it.
        self.decision = decision
        #: Set when the lease is lost.
        self.lost = asyncio.Event()
        self._outcome: WorkOutcome | None = None
        self._body: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._has_cancelled = False

    @property
    def held(self) -> bool:
        """Whether the work may go on: the lease is neither lost nor released."""
        return self._outcome is None and not self.lost.is_set()

    async def release(self, outcome: WorkOutcome = "success") -> None:
        """Gives the permits back, once. A lease that was lost is released as `"ignored"`.

        An outage is not raised: the lease then ends by itself.
        """
        outcome = checked(outcome)
        if self._outcome is None:
            self._outcome = "ignored" if self.lost.is_set() else outcome
            await self._give_back(self._outcome)

    async def __aenter__(self) -> Self:
        if self.lost.is_set():
            await self.release()
            raise LeaseLostError
        self._body = asyncio.current_task()
        self._cancelling = self._body.cancelling() if self._body else 0
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        body, self._body = self._body, None
        is_mine = False
        if self._has_cancelled and body is not None:
            # As `asyncio.timeout` does: a cancellation by somebody else goes on.
            is_mine = body.uncancel() <= self._cancelling and kind is asyncio.CancelledError
        await self.release(outcome_of(kind))
        if is_mine:
            raise LeaseLostError from error

    async def _give_back(self, outcome: WorkOutcome) -> None:
        """Tells the server. What the policy has granted is not known there."""

    def _lose(self) -> None:
        if not self.held:
            return
        self.lost.set()
        if self._body is not None:
            self._has_cancelled = True
            self._body.cancel()


class HeldAsyncLease(AsyncLease):
    """A lease of a server. A task renews it."""

    def __init__(self, decision: Decision, question: LeaseQuestion, call: Call, later: Later, term: Term) -> None:
        super().__init__(decision)
        self._question, self._call, self._later = question, call, later
        self._loop = asyncio.get_running_loop()
        self._renewal = self._loop.create_task(self._renew(term))

    async def _renew(self, term: Term) -> None:
        due = term.renew_at
        while self.held:
            await asyncio.sleep(max(0.0, min(due, term.ends_at) - self._loop.time()))
            now = self._loop.time()
            if now >= term.ends_at:
                break
            try:
                answer = await self._call(RENEW, self._question.renew(), term.attempt(now))
                ttl = renewed_of(answer, term.ttl)
            except WeirError:
                # An outage may end, and a mistake be mended, before the lease ends.
                due = term.after_failure(self._loop.time())
                continue
            if ttl is None:
                break
            term = Term(now, ttl)
            due = term.renew_at
        self._lose()

    async def _give_back(self, outcome: WorkOutcome) -> None:
        self._renewal.cancel()
        # A caller that is cancelled meanwhile ends nothing here.
        await asyncio.shield(self._later(give_back(self._question, self._call, outcome)))


async def acquire(question: LeaseQuestion, call: Call, later: Later) -> AsyncLease:
    """Acquires a lease. While permits are missing or no server answers, it asks again under the same id."""
    try:
        sent_at, outcome = await _ask(question, call)
    except WeirError:
        raise
    except BaseException:
        # Cancelled: the answer may be on its way, and what it grants is given back.
        later(give_back(question, call, "ignored"))
        raise
    if isinstance(outcome, OutageError):
        # The answer may be lost, and the lease be held all the same.
        later(give_back(question, call, "ignored"))
    begun = decided(outcome, question.policy)
    if begun.ttl is None:
        return AsyncLease(begun.decision)
    return HeldAsyncLease(begun.decision, question, call, later, Term(sent_at, begun.ttl))


async def _ask(question: LeaseQuestion, call: Call) -> tuple[float, Acquired | OutageError]:
    """Returns the last answer, and when its question was sent."""
    loop = asyncio.get_running_loop()
    until = loop.time() + question.wait
    for pause in pauses():
        sent_at = loop.time()
        outcome: Acquired | OutageError
        try:
            outcome = acquired_of(await call(ACQUIRE, question.acquire, ATTEMPT))
        except OutageError as outage:
            outcome = outage
        left = until - loop.time()
        if left <= 0 or (isinstance(outcome, Acquired) and outcome.final):
            break
        await asyncio.sleep(min(left, pause))
    return sent_at, outcome


async def give_back(question: LeaseQuestion, call: Call, outcome: WorkOutcome) -> None:
    """Releases a lease, or gives up."""
    for _ in range(RELEASE_ATTEMPTS):
        try:
            await call(RELEASE, question.release(outcome), ATTEMPT)
        except (MistakeError, ClosedError):
            return
        except OutageError:
            await asyncio.sleep(RELEASE_PAUSE)
        else:
            return
