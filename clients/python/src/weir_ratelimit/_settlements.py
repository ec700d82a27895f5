"""Settlements that no server has answered: they are repeated until one does, or their time is over."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from dataclasses import dataclass, field

from ._core import Core
from ._costs import too_old
from ._errors import ClosedError, MistakeError, OutageError
from ._flow import Ask, Flow, Pause
from ._meter_wire import SETTLE, settled_of

ATTEMPT = 2.0
_MOST = 10_000
_LONGEST = 300.0
_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


@dataclass(slots=True)
class Settlement:
    """A settlement, which is repeated as it is: with its id and its costs."""

    message: bytes
    #: Whether it only gives back what a question without an answer may hold. Then no hold need be there.
    is_release: bool = False
    until: float = field(default_factory=lambda: time.monotonic() + _LONGEST)


class Settlements:
    """The settlements of a client that are due. One worker of the client repeats them, each in its turn."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._due: deque[Settlement] = deque()
        self._current: Settlement | None = None
        self._works = False

    def put(self, settlement: Settlement) -> bool:
        """Keeps a settlement. Returns whether a worker must be started."""
        with self._lock:
            if len(self._due) >= _MOST:
                self._core.settlement("dropped")
                return False
            self._due.append(settlement)
            starts, self._works = not self._works, True
            return starts

    def attempt(self, settlement: Settlement) -> Flow[bool]:
        """Settles once. Returns whether it is over; an outage may end. Raises the mistake of a settlement."""
        try:
            event = settled_of((yield Ask(SETTLE, settlement.message, ATTEMPT)))
        except OutageError:
            return False
        except MistakeError as mistake:
            error = too_old("method Settle") if mistake.code == "UNIMPLEMENTED" else mistake
            self._core.settlement("mistake", error)
            raise error from mistake
        except ClosedError:
            self._core.settlement("dropped")
            raise
        self._core.settlement("settled" if settlement.is_release else event)
        return True

    def repeat(self) -> Flow[None]:
        """Repeats what is due until nothing is left. The pauses grow while no server answers."""
        pause = _SHORTEST_PAUSE
        while (settlement := self._take()) is not None:
            longest = _SHORTEST_PAUSE if self._core.closed else _LONGEST_PAUSE
            yield Pause(min(pause, longest) * (0.5 + random.random() / 2))  # noqa: S311
            try:
                is_over = yield from self.attempt(settlement)
            except MistakeError:
                is_over = True
            except ClosedError:
                self._current = None
                self.give_up()
                return
            if is_over:
                pause = 0.0
            else:
                pause = min(max(pause * 2, _SHORTEST_PAUSE), _LONGEST_PAUSE)
                self._put_back(settlement)

    def give_up(self) -> None:
        """Drops all that is due, at the end of the client."""
        with self._lock:
            dropped, self._works = len(self._due) + (self._current is not None), False
            self._due.clear()
            self._current = None
        for _ in range(dropped):
            self._core.settlement("dropped")

    def _take(self) -> Settlement | None:
        with self._lock:
            while self._due:
                settlement = self._current = self._due.popleft()
                if time.monotonic() < settlement.until:
                    return settlement
                self._core.settlement("dropped")
            self._current, self._works = None, False
            return None

    def _put_back(self, settlement: Settlement) -> None:
        # Behind the others, so that one which a server cannot answer does not stop them.
        with self._lock:
            self._due.append(settlement)
