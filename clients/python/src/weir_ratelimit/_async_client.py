"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import grpc

from ._async_calls import Calls
from ._base import BaseClient
from ._channel import open_channel
from ._core import answer
from ._decision import Decision
from ._errors import ClosedError, MistakeError, OutageError
from ._options import Policy
from ._question import Question, encode
from ._token import Metadata
from ._wire import decision_of

if TYPE_CHECKING:
    from ._async_lease import AsyncLease
    from ._async_meter import AsyncMeter, AsyncSettler
    from ._costs import Costs
    from ._meter_wire import Estimate, OnError

T = TypeVar("T")


class AsyncClient(BaseClient):
    """A client of Weir for asyncio. It has a channel for each running loop, made at the first call.

    The constructor checks the options. It neither waits nor fails for the network.
    """

    def _start(self) -> None:
        self._channels: dict[asyncio.AbstractEventLoop, Calls] = {}
        self._in_flight = 0
        self._idle: asyncio.Event | None = None
        #: Tasks beside the callers: a loop alone would drop them.
        self._tasks: set[asyncio.Task[Any]] = set()

    async def allow(
        self,
        resource: str,
        consumer: str = "",
        *,
        cost: int = 1,
        strategy: str | None = None,
        attributes: Mapping[str, str] | None = None,
        peek: bool = False,
        at_most: bool = False,
        id: str | None = None,
        headers: bool = False,
        timeout: timedelta | float | None = None,
        on_failure: Policy | None = None,
        costs: Costs | None = None,
    ) -> Decision:
        """Asks whether a call may go ahead. A denial is a value. `costs` are those of limits with `cost: NAME`.

        Raises MistakeError for a wrong question, and OutageError if the policy is `"error"`.
        """
        defaults = self._core.settings
        question = encode(
            defaults,
            resource,
            consumer,
            cost,
            strategy,
            attributes,
            peek,
            at_most,
            id,
            headers,
            timeout,
            on_failure,
            costs,
        )
        recorded = self._core.begin()
        self._in_flight += 1
        try:
            decision = await self._decide(question, recorded.trace if recorded else ())
        except BaseException as error:
            if recorded:
                recorded.failed(error)
            raise
        finally:
            self._ended()
        if recorded:
            recorded.decided(decision)
        return decision

    async def lease(
        self,
        resource: str,
        consumer: str = "",
        *,
        weight: int = 1,
        ttl: timedelta | float | None = None,
        wait: timedelta | float = 0,
        strategy: str | None = None,
        attributes: Mapping[str, str] | None = None,
        on_failure: Policy | None = None,
    ) -> AsyncLease:
        """Acquires permits of a strategy with `concurrency`, and renews them until they are released.

        `wait` is how long to wait for permits, and for a server. Raises LeaseRefusedError for a denial, MistakeError,
        and OutageError if the policy is `"error"`.
        """
        # Loaded when it is used: a program without leases needs none of it.
        from ._async_lease import acquire  # noqa: PLC0415
        from ._lease_wire import LeaseQuestion  # noqa: PLC0415

        defaults = self._core.settings
        question = LeaseQuestion(defaults, resource, consumer, weight, ttl, wait, strategy, attributes, on_failure)
        with self._core.recorded("weir.lease") as recorded:
            call = partial(self._call_beside, recorded.trace if recorded else ())
            lease = await acquire(question, call, self._later)
        if recorded:
            recorded.decided(lease.decision)
        return lease

    async def meter(
        self,
        resource: str,
        consumer: str = "",
        *,
        estimate: Estimate,
        hold_for: timedelta | float = timedelta(minutes=10),
        on_error: OnError = "used",
        strategy: str | None = None,
        attributes: Mapping[str, str] | None = None,
        headers: bool = False,
        timeout: timedelta | float | None = None,
        on_failure: Policy | None = None,
    ) -> AsyncMeter:
        """Holds an estimate of a budget while work is done, and settles the real use at its end.

        `hold_for` is the longest time that the work takes: after it, what is held comes back. `on_error="keep"` settles
        the estimate of a body that fails and has added nothing. Raises BudgetRefusedError for a denial, MistakeError,
        and OutageError if the policy is `"error"`.
        """
        # Loaded when it is used: a program without meters needs none of it.
        from ._async_meter import begin  # noqa: PLC0415
        from ._meter_wire import MeterQuestion  # noqa: PLC0415

        defaults = self._core.settings
        question = MeterQuestion(
            defaults,
            resource,
            consumer,
            estimate,
            hold_for,
            on_error,
            strategy,
            attributes,
            headers,
            timeout,
            on_failure,
        )
        with self._core.recorded("weir.meter") as recorded:
            trace = recorded.trace if recorded else ()
            settler, call = self._settles(), partial(self._call_beside, trace)
            with self._tracked():
                meter = await begin(question, partial(self._decide, question.asked, trace), settler, call)
        if recorded:
            recorded.decided(meter.decision)
        return meter

    async def ready(self, timeout: timedelta | float) -> bool:
        """Connects, and returns whether a server is connected within the time."""
        if self._core.closed:
            raise ClosedError
        channel = self._open(asyncio.get_running_loop()).channel
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        try:
            async with asyncio.timeout(seconds):
                await channel.channel_ready()
        except TimeoutError:
            return False
        return True

    async def aclose(self, timeout: timedelta | float = 5.0) -> None:
        """Ends the client. Calls in flight have this time to end; later calls raise ClosedError."""
        if not self._core.close():
            return
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        opened = self._channels.get(asyncio.get_running_loop())
        if opened is not None and opened.settler is not None:
            opened.settler.closing.set()
        if self._in_flight:
            self._idle = asyncio.Event()
            try:
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
            except TimeoutError:
                pass
        # Channels of other loops belong to other threads. They end with their loops.
        opened = self._channels.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _decide(self, question: Question, trace: tuple[tuple[str, str], ...]) -> Decision:
        refused = self._core.refused()
        if refused is not None:
            return answer(question.policy, refused)
        try:
            decision = await self._ask(question, trace)
        except (OutageError, MistakeError) as failure:
            return self._core.failed(failure, question.policy)
        self._core.answered()
        return decision

    async def _ask(self, question: Question, trace: tuple[tuple[str, str], ...]) -> Decision:
        metadata = self._core.headers.make() + trace
        calls = self._open(asyncio.get_running_loop())
        return decision_of(await calls.ask(calls.should_allow, question.message, question.timeout, metadata), question)

    def _settles(self) -> AsyncSettler:
        """Returns what settles the meters of this loop."""
        from ._async_meter import AsyncSettler  # noqa: PLC0415

        opened = self._open(asyncio.get_running_loop())
        if opened.settler is None:
            opened.settler = AsyncSettler(self._core, partial(self._call_beside, ()), self._later)
        settler: AsyncSettler = opened.settler
        return settler

    @contextmanager
    def _tracked(self) -> Iterator[None]:
        """Keeps the channel open until a block ends, or the time of `aclose` is over."""
        self._in_flight += 1
        try:
            yield
        finally:
            self._ended()

    def _ended(self) -> None:
        self._in_flight -= 1
        if not self._in_flight and self._idle is not None:
            self._idle.set()

    def _later(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs a task beside the caller. `aclose` waits for it."""

        async def run() -> T:
            try:
                return await work
            finally:
                tracked.__exit__(None, None, None)

        tracked = self._tracked()
        tracked.__enter__()
        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _call_beside(self, trace: Metadata, path: str, message: bytes, timeout: float) -> bytes:
        """Calls another method than that of decisions."""
        loop = asyncio.get_running_loop()
        if self._core.closed and loop not in self._channels:
            raise ClosedError
        with self._tracked():
            calls = self._open(loop)
            try:
                metadata = self._core.headers.make() + trace
                return await calls.ask(calls.channel.unary_unary(path), message, timeout, metadata)
            except OutageError as outage:
                self._core.outage(outage, counted=not path.endswith("/Acquire"))
                raise
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # The channel was closed, and no caller has cancelled anything.
                raise ClosedError from None

    def _open(self, loop: asyncio.AbstractEventLoop) -> Calls:
        opened = self._channels.get(loop)
        if opened is None:
            # A channel refers to its loop, so a weak table would keep both.
            for closed in [other for other in self._channels if other.is_closed()]:
                self._channels.pop(closed, None)
            opened = self._channels[loop] = Calls(loop, open_channel(grpc.aio, self._core.settings))
        return opened
