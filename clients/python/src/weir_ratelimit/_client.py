"""The client for threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import grpc

from ._base import BaseClient
from ._channel import open_channel
from ._core import answer
from ._decision import Decision
from ._errors import ClosedError, MistakeError, OutageError
from ._in_flight import IN_THE_CALLERS_THREAD, InFlight, Method
from ._notice import warn_of_fork
from ._options import Policy
from ._question import Question, encode
from ._token import Metadata
from ._wire import SHOULD_ALLOW, decision_of

if TYPE_CHECKING:
    from ._costs import Costs
    from ._lease import Lease
    from ._meter import Meter, Settler
    from ._meter_wire import Estimate, OnError

_FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"
#: Channels of parent processes. To close them in a child would wait for threads that do not exist there.
_of_parents: list[Any] = []


class Client(BaseClient):
    """A client of Weir for threads. One client serves a process; it connects at the first call.

    The constructor checks the options. It neither waits nor fails for the network.
    """

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._in_flight = InFlight()
        self._process = 0
        self._channel: Any = None
        self._method: Any = None
        self._settler: Settler | None = None

    def allow(
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
        try:
            decision = self._decide(question, recorded.trace if recorded else ())
        except BaseException as error:
            if recorded:
                recorded.failed(error)
            raise
        if recorded:
            recorded.decided(decision)
        return decision

    def lease(
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
    ) -> Lease:
        """Acquires permits of a strategy with `concurrency`, and renews them until they are released.

        `wait` is how long to wait for permits, and for a server. Raises LeaseRefusedError for a denial, MistakeError,
        and OutageError if the policy is `"error"`.
        """
        # Loaded when it is used: a program without leases needs none of it.
        from ._lease import acquire  # noqa: PLC0415
        from ._lease_wire import LeaseQuestion  # noqa: PLC0415

        defaults = self._core.settings
        question = LeaseQuestion(defaults, resource, consumer, weight, ttl, wait, strategy, attributes, on_failure)
        with self._core.recorded("weir.lease") as recorded:
            call = partial(self._call_beside, recorded.trace if recorded else ())
            lease = acquire(question, call, self._later)
        if recorded:
            recorded.decided(lease.decision)
        return lease

    def meter(
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
    ) -> Meter:
        """Holds an estimate of a budget while work is done, and settles the real use at its end.

        `hold_for` is the longest time that the work takes: after it, what is held comes back. `on_error="keep"` settles
        the estimate of a body that fails and has added nothing. Raises BudgetRefusedError for a denial, MistakeError,
        and OutageError if the policy is `"error"`.
        """
        # Loaded when it is used: a program without meters needs none of it.
        from ._meter import begin  # noqa: PLC0415
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
            meter = begin(question, partial(self._decide, question.asked, trace), settler, call)
        if recorded:
            recorded.decided(meter.decision)
        return meter

    def ready(self, timeout: timedelta | float) -> bool:
        """Connects, and returns whether a server is connected within the time."""
        if self._core.closed:
            raise ClosedError
        self._open()
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        connected = grpc.channel_ready_future(self._channel)
        try:
            connected.result(seconds)
        except grpc.FutureTimeoutError:
            return False
        finally:
            connected.cancel()
        return True

    def close(self, timeout: timedelta | float = 5.0) -> None:
        """Ends the client. Calls in flight have this time to end; later calls raise ClosedError."""
        if not self._core.close():
            return
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        if self._channel is not None and self._process == os.getpid():
            if self._settler is not None:
                self._settler.closing.set()
            self._in_flight.drain(seconds)
            self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _decide(self, question: Question, trace: tuple[tuple[str, str], ...]) -> Decision:
        refused = self._core.refused()
        if refused is not None:
            return answer(question.policy, refused)
        try:
            decision = self._ask(question, trace)
        except (OutageError, MistakeError) as failure:
            return self._core.failed(failure, question.policy)
        self._core.answered()
        return decision

    def _later(self, function: Callable[[], None]) -> None:
        """Runs a function beside the caller. `close` waits for it."""

        def run() -> None:
            with self._in_flight.held():
                started.set()
                function()

        started = threading.Event()
        threading.Thread(target=run, name="weir-later", daemon=True).start()
        started.wait()

    def _call_beside(self, trace: Metadata, path: str, message: bytes, timeout: float) -> bytes:
        """Calls another method than that of decisions."""
        self._open()
        method = Method(self._channel, path)
        try:
            return self._in_flight.ask(method, message, timeout, self._core.headers.make() + trace)
        except OutageError as outage:
            self._core.outage(outage, counted=not path.endswith("/Acquire"))
            raise

    def _settles(self) -> Settler:
        """Returns what settles the meters of this process."""
        from ._meter import Settler  # noqa: PLC0415

        self._open()
        with self._lock:
            if self._settler is None:
                self._settler = Settler(self._core, partial(self._call_beside, ()), self._later)
            return self._settler

    def _ask(self, question: Question, trace: tuple[tuple[str, str], ...]) -> Decision:
        metadata = self._core.headers.make() + trace
        method = self._open()
        return decision_of(self._in_flight.ask(method, question.message, question.timeout, metadata), question)

    def _open(self) -> Any:
        process = os.getpid()
        if self._process == process:
            return self._method
        with self._lock:
            if self._process != process:
                if self._channel is not None:
                    _of_parents.append(self._channel)
                    if os.environ.get(_FORK_SUPPORT) is not None:
                        warn_of_fork(_FORK_SUPPORT)
                # Locks of the parent process may be held by threads that do not exist here.
                self._in_flight = InFlight()
                self._settler = None
                self._channel = open_channel(grpc, self._core.settings, IN_THE_CALLERS_THREAD)
                self._method = Method(self._channel, SHOULD_ALLOW)
                self._process = process
            return self._method
