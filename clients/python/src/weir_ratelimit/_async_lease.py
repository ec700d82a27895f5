"""Leases for asyncio: permits that are held while work is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

from ._decision import Decision
from ._errors import LeaseLostError, OutageError, WeirError
from ._flow import AsyncCall, run_async
from ._lease_flow import LeaseState, ask, give_back, renew
from ._lease_wire import LeaseQuestion, Term, WorkOutcome, decided, outcome_of

#: Runs a task beside the caller.
Later = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class AsyncLease(LeaseState):
    """Permits that are held. `async with` releases them at the end of the body, and says how it went.

    A body whose lease is lost is cancelled, and LeaseLostError is raised: others may hold its permits.
    """

    lost: asyncio.Event

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        #: Set when the lease is lost.
        self.lost = asyncio.Event()
        self._body: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._has_cancelled = False

    async def release(self, outcome: WorkOutcome = "success") -> None:
        """Gives the permits back, once. A lease that was lost is released as `"ignored"`.

        An outage is not raised: the lease then ends by itself.
        """
        told = self._end(outcome)
        if told is not None:
            await self._give_back(told)

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
        if self._set_lost() and self._body is not None:
            self._has_cancelled = True
            self._body.cancel()


class HeldAsyncLease(AsyncLease):
    """A lease of a server. A task renews it."""

    def __init__(self, decision: Decision, question: LeaseQuestion, call: AsyncCall, later: Later, term: Term) -> None:
        super().__init__(decision)
        self._extend(term.ends_at)
        self._question, self._call, self._later = question, call, later
        self._renewal = asyncio.get_running_loop().create_task(self._renew(term))

    async def _renew(self, term: Term) -> None:
        await run_async(renew(self._question, term, self._extend), self._call, asyncio.sleep)
        self._lose()

    async def _give_back(self, outcome: WorkOutcome) -> None:
        self._renewal.cancel()
        # A caller that is cancelled meanwhile ends nothing here.
        await asyncio.shield(self._later(_release(self._question, self._call, outcome)))


async def acquire(question: LeaseQuestion, call: AsyncCall, later: Later) -> AsyncLease:
    """Acquires a lease."""
    try:
        sent_at, outcome = await run_async(ask(question), call, asyncio.sleep)
    except WeirError:
        raise
    except BaseException:
        # Cancelled: the answer may be on its way, and what it grants is given back.
        later(_release(question, call, "ignored"))
        raise
    if isinstance(outcome, OutageError):
        # The answer may be lost, and the lease be held all the same.
        later(_release(question, call, "ignored"))
    begun = decided(outcome, question.policy)
    if begun.ttl is None:
        return AsyncLease(begun.decision)
    return HeldAsyncLease(begun.decision, question, call, later, Term(sent_at, begun.ttl))


async def _release(question: LeaseQuestion, call: AsyncCall, outcome: WorkOutcome) -> None:
    await run_async(give_back(question, outcome), call, asyncio.sleep)
