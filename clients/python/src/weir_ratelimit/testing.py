"""For tests: fakes, which answer by a script and know no algorithm, and a `weir` on a clock that the test moves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import inf
from types import TracebackType
from typing import Any, NamedTuple, Self

from ._async_lease import AsyncLease
from ._async_meter import AsyncMeter
from ._client import Client
from ._codes import MISTAKES, OUTAGES
from ._core import Core, answer
from ._costs import Costs
from ._decision import Decision
from ._errors import BudgetRefusedError, ClosedError, ConfigurationError, LeaseRefusedError, MistakeError, OutageError
from ._lease import Lease
from ._lease_wire import LeaseQuestion, WorkOutcome
from ._meter import Meter
from ._meter_wire import MeterQuestion
from ._options import Policy, is_policy
from ._question import encode
from ._test_server import Server, serve

__all__ = [
    "Asked",
    "FakeAsyncClient",
    "FakeAsyncLease",
    "FakeAsyncMeter",
    "FakeClient",
    "FakeLease",
    "FakeMeter",
    "Script",
    "Server",
    "client",
    "serve",
]


def client(target: str, *, clock: Callable[[], float], **options: Any) -> Client:
    """Returns a real client whose breaker reads the clock of the test, in seconds."""
    made = Client(target, **options)
    made._core = Core(made._core.settings, clock)
    return made


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that a fake was asked, and when."""

    resource: str
    consumer: str
    #: When, on the clock of the fake.
    at: float
    cost: int = 1
    strategy: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    peek: bool = False
    at_most: bool = False
    id: str | None = None
    headers: bool = False
    costs: Costs | None = None
    hold_for: timedelta | None = None


_Answer = Callable[[Asked, Policy], Decision]


class Script:
    """The script of a fake: the newest line that matches answers. Without a consumer, a line matches every question.

    `times` is how many questions a line answers: all, if it is not set.
    """

    def __init__(self) -> None:
        self._lines: list[list[Any]] = []

    def allow(self, consumer: str | None = None, *, times: float = inf, **fields: Any) -> Self:
        """Allows, with these fields of the decision."""
        return self._add(consumer, times, _scripted(True, "ok", fields))

    def deny(self, consumer: str | None = None, *, times: float = inf, **fields: Any) -> Self:
        """Denies, with these fields of the decision, such as `retry_after=timedelta(seconds=4)`."""
        return self._add(consumer, times, _scripted(False, "limited", fields))

    def away(self, consumer: str | None = None, *, code: str = "UNAVAILABLE", times: float = inf) -> Self:
        """Is away: the policy answers."""
        if code not in OUTAGES:
            raise ConfigurationError(f"code: {code!r} is not the code of an outage")
        return self._add(consumer, times, lambda _, policy: answer(policy, OutageError(code, "the fake is away")))

    def mistake(self, code: str, consumer: str | None = None, *, field: str | None = None, times: float = inf) -> Self:
        """Raises a mistake, whatever the policy is."""
        if code not in MISTAKES:
            raise ConfigurationError(f"code: {code!r} is not the code of a mistake")

        def fail(_: Asked, __: Policy) -> Decision:
            raise MistakeError(code, "a mistake of the script", field)

        return self._add(consumer, times, fail)

    def clear(self) -> Self:
        """Forgets all lines: everything is allowed."""
        self._lines.clear()
        return self

    def _add(self, consumer: str | None, times: float, answers: _Answer) -> Self:
        self._lines.append([consumer, times, answers])
        return self

    def _answer(self, asked: Asked, policy: Policy) -> Decision:
        for line in reversed(self._lines):
            consumer, left, answers = line
            if left >= 1 and consumer in (None, asked.consumer):
                line[1] = left - 1
                decision: Decision = answers(asked, policy)
                return decision
        return Decision(True, "weir", "ok")


def _scripted(allowed: bool, reason: str, fields: dict[str, Any]) -> _Answer:
    """Returns what answers with these fields. Wrong names fail when the line is written."""
    decision = Decision(allowed, "weir", fields.pop("reason", reason), **fields)
    return lambda asked, _: decision if asked.headers else replace(decision, headers={})


class _Defaults(NamedTuple):
    """What holds for the questions of a fake: it answers at once, and knows no strategy."""

    on_failure: Policy
    timeout: float = 0.1
    strategy: str | None = None


class _Fake:
    def __init__(self, on_failure: Policy = "error", clock: Callable[[], float] = time.time) -> None:
        if not is_policy(on_failure):
            raise ConfigurationError(f'on_failure: {on_failure!r} is not "allow", "deny" or "error"')
        #: What an outage answers where a question does not say.
        self.on_failure: Policy = on_failure
        #: What it answers. Everything is allowed until a line says otherwise.
        self.script = Script()
        #: What it was asked, in order.
        self.asked: list[Asked] = []
        self._clock = clock
        self._closed = False

    def _decide(
        self, resource: str, consumer: str = "", *, hold_for: timedelta | None = None, **question: Any
    ) -> Decision:
        if self._closed:
            raise ClosedError
        encode(_Defaults(self.on_failure), resource, consumer, hold_for=hold_for, **question)
        policy: Policy = question.pop("on_failure", None) or self.on_failure
        question.pop("timeout", None)
        question["attributes"] = dict(question.get("attributes") or {})
        asked = Asked(resource, consumer, at=self._clock(), hold_for=hold_for, **question)
        self.asked.append(asked)
        return self.script._answer(asked, policy)

    def _grant(self, resource: str, consumer: str = "", **question: Any) -> Decision:
        LeaseQuestion(_Defaults(self.on_failure), resource, consumer, **question)
        for name in ("weight", "ttl", "wait"):
            question.pop(name, None)
        decision = self._decide(resource, consumer, **question)
        if not decision.allowed:
            raise LeaseRefusedError(decision)
        return decision

    def _hold(self, resource: str, consumer: str = "", **question: Any) -> tuple[Decision, MeterQuestion]:
        held = MeterQuestion(_Defaults(self.on_failure), resource, consumer, **question)
        for name in ("hold_for", "on_error"):
            question.pop(name, None)
        estimate = question.pop("estimate")
        question["cost" if isinstance(estimate, int) else "costs"] = estimate
        decision = self._decide(resource, consumer, hold_for=held.hold_for, **question)
        if not decision.allowed:
            raise BudgetRefusedError(decision)
        return decision, held


class FakeMeter(Meter):
    """A meter of a fake. It keeps what it has settled."""

    def __init__(self, decision: Decision, question: MeterQuestion) -> None:
        super().__init__(decision, question, lambda message: None)

    @property
    def settled(self) -> Mapping[str, int] | None:
        """What was settled, by name. A name that is absent counts as granted. None: nothing yet."""
        return self._settled


class FakeAsyncMeter(AsyncMeter):
    """A meter of a fake. It keeps what it has settled."""

    def __init__(self, decision: Decision, question: MeterQuestion) -> None:
        super().__init__(decision, question, _settle_nowhere)

    @property
    def settled(self) -> Mapping[str, int] | None:
        """What was settled, by name. A name that is absent counts as granted. None: nothing yet."""
        return self._settled


async def _settle_nowhere(message: bytes) -> None:
    """Needs no server."""


class FakeLease(Lease):
    """A lease of a fake. It is held until it is released, or the test takes it away."""

    @property
    def outcome(self) -> WorkOutcome | None:
        """How the work went, once the lease is released."""
        return self._outcome

    def lose(self) -> None:
        """Takes the lease away, as an outage of a whole `ttl` does."""
        self._lose()


class FakeAsyncLease(AsyncLease):
    """A lease of a fake. It is held until it is released, or the test takes it away."""

    @property
    def outcome(self) -> WorkOutcome | None:
        """How the work went, once the lease is released."""
        return self._outcome

    def lose(self) -> None:
        """Takes the lease away, as an outage of a whole `ttl` does: its body is cancelled."""
        self._lose()


class FakeClient(_Fake):
    """A client for tests. It needs no server, and answers by its script."""

    def __init__(self, on_failure: Policy = "error", clock: Callable[[], float] = time.time) -> None:
        super().__init__(on_failure, clock)
        #: The leases that it has granted, in order.
        self.leases: list[FakeLease] = []
        #: The meters that it has begun, in order.
        self.meters: list[FakeMeter] = []

    def allow(self, resource: str, consumer: str = "", **question: Any) -> Decision:
        """Answers by the script. Questions are checked as those of a client are."""
        return self._decide(resource, consumer, **question)

    def lease(self, resource: str, consumer: str = "", **question: Any) -> FakeLease:
        """Grants a lease, or raises LeaseRefusedError, by the script."""
        lease = FakeLease(self._grant(resource, consumer, **question))
        self.leases.append(lease)
        return lease

    def meter(self, resource: str, consumer: str = "", **question: Any) -> FakeMeter:
        """Begins a meter, or raises BudgetRefusedError, by the script."""
        meter = FakeMeter(*self._hold(resource, consumer, **question))
        self.meters.append(meter)
        return meter

    def ready(self, timeout: timedelta | float) -> bool:
        """Returns whether the fake is open."""
        return not self._closed

    def close(self, timeout: timedelta | float = 5.0) -> None:
        """Ends the fake."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class FakeAsyncClient(_Fake):
    """A client of asyncio for tests. It needs no server, and answers by its script."""

    def __init__(self, on_failure: Policy = "error", clock: Callable[[], float] = time.time) -> None:
        super().__init__(on_failure, clock)
        #: The leases that it has granted, in order.
        self.leases: list[FakeAsyncLease] = []
        #: The meters that it has begun, in order.
        self.meters: list[FakeAsyncMeter] = []

    async def allow(self, resource: str, consumer: str = "", **question: Any) -> Decision:
        """Answers by the script. Questions are checked as those of a client are."""
        return self._decide(resource, consumer, **question)

    async def lease(self, resource: str, consumer: str = "", **question: Any) -> FakeAsyncLease:
        """Grants a lease, or raises LeaseRefusedError, by the script."""
        lease = FakeAsyncLease(self._grant(resource, consumer, **question))
        self.leases.append(lease)
        return lease

    async def meter(self, resource: str, consumer: str = "", **question: Any) -> FakeAsyncMeter:
        """Begins a meter, or raises BudgetRefusedError, by the script."""
        meter = FakeAsyncMeter(*self._hold(resource, consumer, **question))
        self.meters.append(meter)
        return meter

    async def ready(self, timeout: timedelta | float) -> bool:
        """Returns whether the fake is open."""
        return not self._closed

    async def aclose(self, timeout: timedelta | float = 5.0) -> None:
        """Ends the fake."""
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
