"""Meters for threads: budgets of which an estimate is held while work is done, and the real use settled at its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ._core import Core
from ._decision import Decision
from ._errors import BudgetRefusedError, ClosedError, MistakeError, WeirError
from ._flow import Call, run
from ._lease import Later
from ._meter_wire import MeterQuestion, MeterState, Use
from ._settlements import Settlement, Settlements


class Settler:
    """Settles in the thread of the caller, and what no server answers in a thread of its own."""

    def __init__(self, core: Core, call: Call, later: Later) -> None:
        self._core, self._call, self._later = core, call, later
        self._settlements = Settlements(core)
        #: Set when the client closes: then nothing waits long.
        self.closing = threading.Event()

    def settle(self, message: bytes, call: Call) -> None:
        """Settles. What an outage prevents is repeated. Raises a mistake."""
        settlement = Settlement(message)
        try:
            is_over = not self._core.is_open and run(self._settlements.attempt(settlement), call, time.sleep)
        except WeirError:
            raise
        except BaseException:
            # Ctrl-C: the answer may be on its way.
            self._repeat(settlement)
            raise
        if not is_over:
            self._repeat(settlement)

    def release(self, message: bytes) -> None:
        """Gives back what a question without an answer may hold. What the breaker kept back holds nothing."""
        if not self._core.is_open:
            self._repeat(Settlement(message, is_release=True))

    def _repeat(self, settlement: Settlement) -> None:
        if self._settlements.put(settlement):
            self._later(lambda: run(self._settlements.repeat(), self._call, self._pause))

    def _pause(self, seconds: float) -> None:
        if self.closing.is_set():
            time.sleep(seconds)
        else:
            self.closing.wait(seconds)


class Meter(MeterState):
    """An estimate that is held. `with` settles what was used, once, at the end of the body.

    That is what `settle` says, else the sum of `add`, else the estimate. A body that fails settles what was added, or
    gives back all if nothing was.
    """

    def __init__(self, decision: Decision, question: MeterQuestion, settle: Callable[[bytes], None]) -> None:
        super().__init__(decision, question)
        self._send = settle

    def settle(self, **used: int) -> None:
        """Settles the real use now. A name that is absent counts as added, or as granted.

        An outage is not raised: the settlement is then repeated. A mistake is.
        """
        self._tell(self._explicit(used))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        used = self._final(None, failed=kind is not None)
        if used is None:
            return
        try:
            self._tell(used)
        except WeirError:
            # It is logged and counted. What the body raised matters more.
            if kind is None:
                raise

    def _tell(self, used: Use) -> None:
        self._send(self._question.settlement(used))


def begin(question: MeterQuestion, decide: Callable[[], Decision], settler: Settler, call: Call) -> Meter:
    """Asks for a budget."""
    try:
        decision = decide()
    except (MistakeError, ClosedError):
        raise
    except BaseException:
        # An outage, or Ctrl-C: the answer may be lost, and the estimate be held all the same.
        settler.release(question.settlement(question.nothing()))
        raise
    if decision.allowed:
        return Meter(decision, question, lambda message: settler.settle(message, call))
    if decision.source == "policy":
        settler.release(question.settlement(question.nothing()))
    raise BudgetRefusedError(decision)
