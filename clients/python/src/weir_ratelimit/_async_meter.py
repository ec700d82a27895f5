"""Meters for asyncio: budgets of which an estimate is held while work is done, and the real use settled at its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Self

from ._core import Core
from ._decision import Decision
from ._errors import BudgetRefusedError, ClosedError, MistakeError, WeirError
from ._flow import AsyncCall, run_async
from ._meter_wire import MeterQuestion, MeterState, Use
from ._settlements import Settlement, Settlements

#: Runs a task beside the caller.
Later = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]


class AsyncSettler:
    """Settles in a task that no cancellation of its caller ends, and what no server answers in another one."""

    def __init__(self, core: Core, call: AsyncCall, later: Later) -> None:
        self._core, self._call, self._later = core, call, later
        self._settlements = Settlements(core)
        #: Set when the client closes: then nothing waits long.
        self.closing = asyncio.Event()

    async def settle(self, message: bytes, call: AsyncCall) -> None:
        """Settles. What an outage prevents is repeated. Raises a mistake."""
        error = await asyncio.shield(self._later(self._attempt(Settlement(message), call)))
        if error is not None:
            raise error

    def release(self, message: bytes) -> None:
        """Gives back what a question without an answer may hold. What the breaker kept back holds nothing."""
        if not self._core.is_open:
            self._repeat(Settlement(message, is_release=True))

    async def _attempt(self, settlement: Settlement, call: AsyncCall) -> WeirError | None:
        try:
            if self._core.is_open or not await run_async(self._settlements.attempt(settlement), call, asyncio.sleep):
                self._repeat(settlement)
        except WeirError as error:
            return error
        return None

    def _repeat(self, settlement: Settlement) -> None:
        if self._settlements.put(settlement):
            self._later(self._work())

    async def _work(self) -> None:
        try:
            await run_async(self._settlements.repeat(), self._call, self._pause)
        except asyncio.CancelledError:
            # The loop ends.
            self._settlements.give_up()
            raise

    async def _pause(self, seconds: float) -> None:
        if self.closing.is_set():
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.closing.wait()


class AsyncMeter(MeterState):
    """An estimate that is held. `async with` settles what was used, once, at the end of the body.

    That is what `settle` says, else the sum of `add`, else the estimate. A body that fails or is cancelled settles what
    was added, or gives back all if nothing was.
    """

    def __init__(self, decision: Decision, question: MeterQuestion, settle: Callable[[bytes], Awaitable[None]]) -> None:
        super().__init__(decision, question)
        self._send = settle

    async def settle(self, **used: int) -> None:
        """Settles the real use now. A name that is absent counts as added, or as granted.

        An outage is not raised: the settlement is then repeated. A mistake is.
        """
        await self._tell(self._explicit(used))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        used = self._final(None, failed=kind is not None)
        if used is None:
            return
        try:
            await self._tell(used)
        except WeirError:
            # It is logged and counted. What the body raised matters more.
            if kind is None:
                raise

    async def _tell(self, used: Use) -> None:
        await self._send(self._question.settlement(used))


async def begin(
    question: MeterQuestion, decide: Callable[[], Awaitable[Decision]], settler: AsyncSettler, call: AsyncCall
) -> AsyncMeter:
    """Asks for a budget."""
    try:
        decision = await decide()
    except (MistakeError, ClosedError):
        raise
    except BaseException:
        # An outage, or a cancellation: the answer may be lost, and the estimate be held all the same.
        settler.release(question.settlement(question.nothing()))
        raise
    if decision.allowed:
        return AsyncMeter(decision, question, lambda message: settler.settle(message, call))
    if decision.source == "policy":
        settler.release(question.settlement(question.nothing()))
    raise BudgetRefusedError(decision)
