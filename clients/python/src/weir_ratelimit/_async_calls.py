"""The calls of a client for asyncio on one loop.

One timer watches over all of them: a timer for each, made and cancelled, takes a tenth of the CPU of a call.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import grpc

from ._core import DEADLINE_AFTER_TIMER, late
from ._timed import Timed, take_overdue
from ._token import Metadata
from ._wire import SHOULD_ALLOW, failure_of


class Calls:
    """A channel, and the calls on it that have begun."""

    def __init__(self, loop: asyncio.AbstractEventLoop, channel: Any) -> None:
        self.channel = channel
        self.should_allow = channel.unary_unary(SHOULD_ALLOW)
        #: What settles the meters of this loop, once there is one.
        self.settler: Any = None
        self._loop = loop
        self._calls: set[Timed] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at = inf

    async def ask(self, method: Any, message: bytes, timeout: float, metadata: Metadata) -> bytes:
        """Makes one call."""
        call = method(message, timeout=timeout + DEADLINE_AFTER_TIMER, metadata=metadata)
        timed = Timed(self._loop.time() + timeout, call)
        self._calls.add(timed)
        if timed.due < self._wake_at:
            self._wake(timed.due)
        try:
            answer: bytes = await call
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not timed.expired or (task is not None and task.cancelling()):
                # Either the caller gives up, or this client was closed. Neither is an outage.
                call.cancel()
                raise
            raise late(timeout) from None
        except grpc.RpcError as error:
            raise failure_of(error) from error
        finally:
            self._calls.discard(timed)
        return answer

    def _wake(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wake_at = at
        self._timer = None if at == inf else self._loop.call_at(at, self._due)

    def _due(self) -> None:
        self._timer = None
        overdue, next_due = take_overdue(self._calls, self._loop.time())
        self._wake(next_due)
        for call in overdue:
            call.cancel()
